// Runs one code object of a program by itself, to find a kernel with wrong results.
#pragma once

#include <span>
#include <vector>

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"
#include "runtime/device.hpp"

namespace kiln::tools {

// `kernel` is a portable code object of `source`. `inputs` are its operands; returns its results.
std::vector<literal> run_single_kernel(const program& source, const instruction& kernel,
                                       std::span<const literal> inputs, const jit_options& options, device& target);

}  // namespace kiln::tools
