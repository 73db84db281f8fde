// Tensors as .npy files (NumPy's format, versions 1 and 2): little-endian, C order. bf16 and fp8 are stored as uint16
// and uint8 (CLI.md); as_type converts them back. Source of the format: NumPy enhancement proposal 1.
#pragma once

#include <filesystem>

#include "ir/literal.hpp"

namespace kiln::tools {

// Throws error{missing_file, truncated, corrupted, unsupported} naming the file.
literal read_npy(const std::filesystem::path& file);

// Reinterprets uint16 as bf16, or uint8 as fp8, if `wanted` is such a type.
literal as_type(literal data, element_type wanted);

void write_npy(const std::filesystem::path& file, const literal& data);

// `name` as a file name: characters that are not allowed, or that would lead out of the folder, are replaced by '_'.
std::string file_name(std::string_view name);

}  // namespace kiln::tools
