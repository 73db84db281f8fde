// HIP C++ → amdgcnspirv: Clang as a library to LLVM IR, LLVM's own back end to SPIR-V, in a forked copy of this process
// (forked_copy.hpp). Needs no ROCm, no files beside the source (the device header is inside the program) and no device.
// The same source gives the same bytes, whatever its path. Any number of threads may compile; they take turns, since
// LLVM's SPIR-V back end keeps global state. Throws source_error for mistakes in the source, error{unsupported} for
// what portable kernels cannot have.
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
  bool whole_module = true;                   // fill `words`
  std::string include_root = {};  // the folder that #include may read, with those below it; empty: the source's own
};

// `file` is the name for messages; `#include "..."` looks beside it, and reads nothing outside of
// hip_options::include_root.
compiled_source compile_hip(std::string_view source, const std::string& file, const hip_options& options = {});
// Reads the file. error{missing_file} where it cannot.
compiled_source compile_hip_file(const std::string& file, const hip_options& options = {});

// The device header's files, by name as they are included.
std::span<const std::pair<std::string_view, std::string_view>> device_headers();

}  // namespace kiln::spirv
