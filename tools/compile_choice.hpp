// The options of `kiln compile` that decide what a model becomes, and the compilation with them. Commands that compile
// an ONNX model share them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aot/onnx/import.hpp"
#include "aot/pipeline.hpp"
#include "ir/container/container.hpp"
#include "ir/program.hpp"
#include "ir/trust/user_keys.hpp"
#include "tools/custom_ops.hpp"
#include "tools/explanation.hpp"

namespace kiln::tools {

struct compile_choice {
  std::vector<std::string> dims, shapes, values, sequences, may_be_one, disabled_passes;
  bool fp16 = false, bf16 = false, int8 = false, int4_weights = false;
  // These say where the model's parts are and what may be written; they decide nothing about the result.
  custom_op_choice custom_ops;
  std::string external_weights, dump_dir;
  std::size_t max_nodes = import_options{}.max_nodes;
};

void add_compile_options(CLI::App& app, compile_choice& choice);
// Options that tell where the parts of a model are, for a command that knows the others already.
void add_source_options(CLI::App& app, compile_choice& choice);

// The options that decide the result, as JSON, and back. The second throws error{corrupted} if the text is none.
std::string text_of(const compile_choice& choice);
compile_choice compile_choice_from(const std::string& text);

struct compiled_model {
  program result;
  std::optional<program> steps;  // the form of a decoder with caches in place
  quantization_report quantized;
  double import_ms = 0, compile_ms = 0;
};

// The options of the passes that the choice decides.
compile_options compile_options_of(const compile_choice& choice);

// `explained` and `imported`, which receives the program before it is optimized, may be null. Throws error{usage} for
// options that contradict each other, and what the import throws.
compiled_model compile_model(const std::string& model, const compile_choice& choice, explanation* explained,
                             program* imported = nullptr);

// Writes the file. Kernels of custom operators, which can do as much as native code, are signed with this user's own
// key, because this user chose their sources; not if `unsigned_kernels`, and, with a warning, if there is no key.
void write_compiled(const compiled_model& compiled, const std::string& file, bool unsigned_kernels,
                    container_extras extras = {});

void add_unsigned_option(CLI::App& app, bool& unsigned_kernels);

}  // namespace kiln::tools
