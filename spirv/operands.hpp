// Checks what a kernel is given before it is compiled: a file can state any shapes and attributes beside an object, and
// kernels rely on these rules to stay within their tensors. Pure; any thread.
#pragma once

#include <span>

#include "spirv/object.hpp"

namespace kiln::spirv {

// Types, requirements, inputs that were left out, and outputs as infer() gives them. All shapes are static. Throws
// error{invalid_model}.
void check_operands(const object& o, std::span<const shape> inputs, std::span<const shape> outputs);

}  // namespace kiln::spirv
