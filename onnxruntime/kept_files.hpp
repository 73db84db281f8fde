// The bound of the cache folder of compiled parts: files that were not used for longest go first. Nothing here throws,
// because a folder that is too large is no reason to refuse a model. Processes may share the folder.
#pragma once

#include <cstdint>
#include <filesystem>

namespace kiln::ort {

// Notes that a file is used now.
void mark_used(const std::filesystem::path& file) noexcept;

// Removes `.kiln` files until those left have at most `most_bytes`, and what compilers that were ended have left
// behind. A file that was used within the last ten minutes stays: a session is about to open it.
void make_room(const std::filesystem::path& folder, std::uintmax_t most_bytes) noexcept;

}  // namespace kiln::ort
