// Whether the launches of a native kernel fit the instruction that uses it. A kernel comes from a file or a cache: its
// counts, sizes and indices are checked against the program before anything is read or launched by them.
#pragma once

#include <string>
#include <string_view>

#include "ir/instruction.hpp"
#include "ir/native_kernel.hpp"

namespace kiln {

// For messages: "kernel 'softmax' (node of /Softmax)".
std::string describe_instruction(const instruction& i);

// The instruction's shapes must be static. `family` is that of the device or target: "cpu", "amdgpu" or "nvidia".
// Throws error{corrupted}, naming the instruction.
void check_launches(const instruction& i, const native_kernel& kernel, std::string_view family);

}  // namespace kiln
