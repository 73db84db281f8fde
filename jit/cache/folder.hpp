// Creates and checks the folders that the cache uses.
#pragma once

#include <filesystem>
#include <string>

#include "jit/cache/file_system.hpp"

namespace kiln {

// Creates the folder and its missing parents with mode 0700. `folder` must be absolute. Returns "", or the reason why
// the folder must not be used: somebody else could put code into it (ir/trust/safe_path.hpp), it belongs to another
// user, or it is not a folder.
std::string prepare_cache_folder(file_system& files, const std::filesystem::path& folder);

// Returns "", or the reason why a folder must not be used as a read-only layer. A layer may also belong to root. If
// every entry must be signed, it may belong to anybody, as long as it is not writable by everybody.
std::string refuse_layer(file_system& files, const std::filesystem::path& folder, bool signatures_required);

}  // namespace kiln
