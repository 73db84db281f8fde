// The files that a HIP source may include, as Clang's file system: those of one folder and below it, whatever way leads
// to them (absolute names, `..`, links, names that macros make, `#include_next`, `__has_include`, `#embed`), and files
// in memory. Everything else is not there; Clang asks this file system alone.
#pragma once

#include <llvm/ADT/IntrusiveRefCntPtr.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <filesystem>
#include <set>
#include <string>

namespace kiln::spirv {

// `memory` comes first. A root that cannot be resolved leaves the files in memory only. Files of the root that are
// opened are added to `opened`, relative to it.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> confined_files(
    const std::filesystem::path& root, llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory,
    std::set<std::string>& opened);

}  // namespace kiln::spirv
