// A file system for Clang that contains only the files that a HIP source may include: one folder with its subfolders,
// and files in memory. It confines every kind of access (absolute names, `..`, links, names made by macros,
// `#include_next`, `__has_include`, `#embed`). All other files do not exist; Clang uses no other file system.
#pragma once

#include <llvm/ADT/IntrusiveRefCntPtr.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <filesystem>
#include <set>
#include <string>

namespace kiln::spirv {

// Files in `memory` take precedence. If the root cannot be resolved, only the files in memory exist. Files of the root
// that are opened are added to `opened`, relative to the root.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> confined_files(
    const std::filesystem::path& root, llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory,
    std::set<std::string>& opened);

}  // namespace kiln::spirv
