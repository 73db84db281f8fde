// Which folders the cache uses, and which it refuses.
#pragma once

#include <filesystem>
#include <string>

#include "jit/cache/file_system.hpp"

namespace kiln {

// Makes the folder and its missing parents, mode 0700, and says why it must not be used: somebody else could put code
// into it (ir/trust/safe_path.hpp), it belongs to another user, or it is no folder. `folder` is absolute. "" : it is
// good.
std::string prepare_cache_folder(file_system& files, const std::filesystem::path& folder);

// The same question for a read-only layer, which may belong to root too. Where every entry must be signed anyway, it
// may also belong to others, and must only not be writable by everybody.
std::string refuse_layer(file_system& files, const std::filesystem::path& folder, bool signatures_required);

}  // namespace kiln
