// Reads small files that others may have made: lists, JSON, messages. Thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kiln {

// The whole file, of any kind (a pipe, too). Reads at most `limit` bytes. Throws error{missing_file} if the file cannot
// be opened or read or is a pipe to which nobody writes for 5 s, and error{unsupported} if it is larger than `limit`.
std::string read_file(const std::filesystem::path& file, std::size_t limit);

}  // namespace kiln
