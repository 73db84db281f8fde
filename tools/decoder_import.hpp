// The import of models that may be decoders.
#pragma once

#include <filesystem>
#include <vector>

#include "aot/caches_in_place.hpp"
#include "aot/onnx/import.hpp"
#include "ir/program.hpp"

namespace kiln::tools {

// Imports an ONNX model. If it is a decoder, dimensions of its past that the options do not name may also be 0, because
// the first step has no past. Throws what import_onnx throws.
program import_with_empty_past(const std::filesystem::path& file, const import_options& options = {});

// The caches of a decoder: states to which a step appends along an axis. Empty for a model that is no decoder.
std::vector<cache_port> caches_of(const program& imported);

}  // namespace kiln::tools
