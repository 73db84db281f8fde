// Checks that the launches of a native kernel fit the instruction that uses it. Kernels come from files and caches, so
// their counts, sizes and indices are checked against the program before they are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/instruction.hpp"
#include "ir/native_kernel.hpp"

namespace kiln {

// The most workgroups (in x) that every GPU and both drivers accept.
inline constexpr std::int64_t most_groups = INT32_MAX;
// More than any machine has. Keeps sums of hostile sizes from wrapping.
inline constexpr std::size_t most_scratch_bytes = std::size_t{1} << 46;

// For messages: "kernel 'softmax' (node of /Softmax)".
std::string describe_instruction(const instruction& i);

// One past the last byte that the map describes, from the start of its buffer.
double end_of(const tensor_map& map);
// The same with another outermost dimension.
double end_of(const tensor_map& map, std::int64_t outer);

// An instruction whose kernel has tensor maps of known sizes must have static shapes for these. `family` is the target
// family of the device: "cpu", "amdgpu" or "nvidia". Throws error{corrupted}, naming the instruction.
void check_launches(const instruction& i, const native_kernel& kernel, std::string_view family);

}  // namespace kiln
