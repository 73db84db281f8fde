// SPIR-V in the wrapping that ROCm reads: a clang offload bundle with an empty host entry and the entry
// hip-spirv64-amd-amdhsa--amdgcnspirv. HIP 6.4 and later finalize such a bundle themselves (hipModuleLoadData); raw
// SPIR-V they reject. Pure functions, deterministic.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::spirv {

inline constexpr std::string_view bundle_entry = "hip-spirv64-amd-amdhsa--amdgcnspirv";

std::vector<std::byte> make_offload_bundle(std::span<const std::byte> words);

}  // namespace kiln::spirv
