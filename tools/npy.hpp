// Tensors as .npy files (NumPy's format, versions 1 and 2): little-endian, C order. bf16 and fp8 travel as uint16 and
// uint8 (CLI.md), so reading takes the shape that is wanted. Source of the format: NumPy enhancement proposal 1.
#pragma once

#include <filesystem>

#include "ir/literal.hpp"

namespace kiln::tools {

// Throws error{missing_file, truncated, corrupted, unsupported} naming the file.
literal read_npy(const std::filesystem::path& file);

// Reinterprets uint16 as bf16 and uint8 as fp8 where that is what `wanted` asks for.
literal as_type(literal data, element_type wanted);

void write_npy(const std::filesystem::path& file, const literal& data);

// `name` with every character that a file name cannot hold, or that would leave the folder, replaced by '_'.
std::string file_name(std::string_view name);

}  // namespace kiln::tools
