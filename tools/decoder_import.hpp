// The import of models that may be decoders.
#pragma once

#include <filesystem>

#include "aot/onnx/import.hpp"
#include "ir/program.hpp"

namespace kiln::tools {

// Imports an ONNX model. If it is a decoder, dimensions of its past that the options do not name may also be 0, because
// the first step has no past. Throws what import_onnx throws.
program import_with_empty_past(const std::filesystem::path& file, const import_options& options = {});

}  // namespace kiln::tools
