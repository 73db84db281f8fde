// Runs one code object of a program on its own, to find the kernel that is wrong.
#pragma once

#include <span>
#include <vector>

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"
#include "runtime/device.hpp"

namespace kiln::tools {

// `kernel` is a portable code object of `source`; inputs and outputs are its own.
std::vector<literal> run_single_kernel(const program& source, const instruction& kernel,
                                       std::span<const literal> inputs, const jit_options& options, device& target);

}  // namespace kiln::tools
