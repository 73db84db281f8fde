// Checks what a kernel is given before it is compiled: a file can state any shapes and attributes beside an object, and
// kernels rely on these rules to stay within their tensors. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "spirv/object.hpp"

namespace kiln::spirv {

// Types, requirements, inputs that were left out, and outputs as infer() gives them. Throws error{invalid_model}.
// Returns what is left to check when the values of open dims are known: expressions that are 0 where a requirement
// holds, and elsewhere a number that does not fit into 32 bits (native_kernel::bounded_sizes). Throws
// error{unsupported} where that cannot be told.
std::vector<dim> check_operands(const object& o, std::span<const shape> inputs, std::span<const shape> outputs);

}  // namespace kiln::spirv
