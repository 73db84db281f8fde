// Compiles HIP C++ to amdgcnspirv: Clang as a library generates LLVM IR, and LLVM's back end generates SPIR-V, in a
// forked copy of this process (forked_copy.hpp). It needs no ROCm, no device, and no files besides the source (the
// device header is embedded in the program). The same source gives the same bytes, whatever its path. Any number of
// threads may compile, but one at a time, because LLVM's SPIR-V back end has global state. Throws source_error for
// errors in the source, and error{unsupported} for features that portable kernels do not support.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spirv/hip/compiled_source.hpp"

namespace kiln::spirv {

struct hip_options {
  std::vector<std::string> definitions = {};  // NAME or NAME=VALUE
  bool whole_module = true;                   // whether to fill `words`
  // `#include` may read only this folder and its subfolders; empty: the source's folder.
  std::string include_root = {};
};

// `file` is the name in messages. `#include "..."` searches its folder and reads nothing outside of
// hip_options::include_root.
compiled_source compile_hip(std::string_view source, const std::string& file, const hip_options& options = {});
// Reads the source from a file. Throws error{missing_file} if that fails.
compiled_source compile_hip_file(const std::string& file, const hip_options& options = {});

// The files of the device header, by the name used in #include.
std::span<const std::pair<std::string_view, std::string_view>> device_headers();

}  // namespace kiln::spirv
