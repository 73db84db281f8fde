// Tensors as .npy files (NumPy's format, versions 1 and 2): little-endian, C order. bf16 and fp8 are stored as their
// bits in uint16 and uint8. Elements of fewer than 8 bits take one byte each: integers as int8 or uint8, floats as
// their codes in uint8. as_type converts them back. Source of the format: NumPy enhancement proposal 1.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "ir/literal.hpp"

namespace kiln::tools {

// Throws error{missing_file, truncated, corrupted, unsupported} naming the file.
literal read_npy(const std::filesystem::path& file);

// Converts the elements of a file to the type `wanted`. The file must have the type that `wanted` is stored as. Throws
// error{usage} for an integer that is out of range.
literal as_type(literal data, element_type wanted);

void write_npy(const std::filesystem::path& file, const literal& value);

// Writes an array of text: element i is texts[indices[i]], UTF-8 that becomes NumPy's UTF-32. Throws
// error{corrupted} for an index beyond the texts or a text that is no UTF-8.
void write_npy(const std::filesystem::path& file, const literal& indices, std::span<const std::string> texts);

// `name` as a file name: characters that are not allowed, or that would lead out of the folder, are replaced by '_'.
std::string file_name(std::string_view name);

}  // namespace kiln::tools
