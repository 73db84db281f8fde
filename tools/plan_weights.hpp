// Files without weights (kiln compile --strip-weights) and the ONNX models that have the weights: what refit, and
// --weights of run, perf, tune and verify share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/compile_choice.hpp"

namespace kiln::tools {

struct weights_choice {
  std::string model;       // --weights; empty: the file has its own
  compile_choice sources;  // of these only where the parts of the model are
};

// --weights, for commands that run a model, and where the parts of that model are.
void add_weights_options(CLI::App& app, weights_choice& choice);
// For a command that reads models without --weights, too: the other options are allowed without it.
void allow_sources_alone(CLI::App& app);

// A file without weights.
struct stripped_plan {
  program plan;
  compile_choice compiled_with;  // its sources are those of the caller
};

// Throws error{usage} if the file has weights. Nothing of it is run, so it needs no trusted signature.
stripped_plan read_stripped(const std::string& file, const compile_choice& sources);

// Compiles the model as the plan was compiled. The result has the plan's kernels, so that the objects and the tuning
// records of the plan are those of the result. Throws error{mismatch} with the first difference if it does not, because
// it is another model. `imported` (may be null) receives the program before it was optimized.
compiled_model compile_like(const stripped_plan& plan, const std::string& file, const std::string& model,
                            program* imported = nullptr);

}  // namespace kiln::tools
