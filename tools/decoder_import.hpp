// The import of models that may be decoders.
#pragma once

#include <filesystem>
#include <optional>

#include "aot/onnx/import.hpp"
#include "aot/pipeline.hpp"
#include "ir/program.hpp"

namespace kiln::tools {

// Imports an ONNX model. If it is a decoder, dimensions of its past that the options do not name may also be 0, because
// the first step has no past. Throws what import_onnx throws.
program import_with_empty_past(const std::filesystem::path& file, const import_options& options = {});

// Asks for the form with caches in place, into `steps`, if the model is a decoder: sets caches, logits and steps.
void ask_for_steps(const program& imported, compile_options& options, std::optional<program>& steps);

}  // namespace kiln::tools
