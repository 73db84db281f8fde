// Checks that the launches of a native kernel fit the instruction that uses it. Kernels come from files and caches, so
// their counts, sizes and indices are checked against the program before they are used.
#pragma once

#include <string>
#include <string_view>

#include "ir/instruction.hpp"
#include "ir/native_kernel.hpp"

namespace kiln {

// For messages: "kernel 'softmax' (node of /Softmax)".
std::string describe_instruction(const instruction& i);

// The instruction's shapes must be static. `family` is the target family of the device: "cpu", "amdgpu" or "nvidia".
// Throws error{corrupted}, naming the instruction.
void check_launches(const instruction& i, const native_kernel& kernel, std::string_view family);

}  // namespace kiln
