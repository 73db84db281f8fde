// Reads a file that holds one tensor, like ONNX's test data (input_0.pb).
#pragma once

#include <filesystem>

#include "ir/literal.hpp"

namespace kiln {

// Throws error{missing_file, corrupted, unsupported}; the message names the file.
literal read_onnx_tensor(const std::filesystem::path& file);

}  // namespace kiln
