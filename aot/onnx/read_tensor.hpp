// One tensor in a file of its own, as ONNX's test data has them (input_0.pb).
#pragma once

#include <filesystem>

#include "ir/literal.hpp"

namespace kiln {

// Throws error{missing_file, corrupted, unsupported} naming the file.
literal read_onnx_tensor(const std::filesystem::path& file);

}  // namespace kiln
