// Which folders the cache uses, and which it refuses.
#pragma once

#include <filesystem>
#include <string>

#include "jit/cache/file_system.hpp"

namespace kiln {

// Makes the folder and its missing parents, mode 0700, and says why it must not be used: somebody else could put code into
// it (foreign-owned, writable by its group or everybody, a link that is foreign-owned or leads to such, or below a folder that everybody may write to
// and that is not sticky), or it is no folder. `folder` is absolute. "" : it is good.
std::string prepare_cache_folder(file_system& files, const std::filesystem::path& folder);

// The same question for a shared read-only layer, which may belong to somebody else but must not be open to everybody.
std::string refuse_layer(file_system& files, const std::filesystem::path& folder);

}  // namespace kiln
