// Wraps SPIR-V in the container that ROCm reads: a clang offload bundle with an empty host entry and the entry
// hip-spirv64-amd-amdhsa--amdgcnspirv. HIP 6.4 and later finalize such a bundle in hipModuleLoadData; they reject raw
// SPIR-V. Pure functions, deterministic.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::spirv {

inline constexpr std::string_view bundle_entry = "hip-spirv64-amd-amdhsa--amdgcnspirv";

std::vector<std::byte> make_offload_bundle(std::span<const std::byte> words);

}  // namespace kiln::spirv
