// Handles fusions that contain dimensions of 0. Generators assume that every axis has at least one element. But a
// result can have elements although an operand has none: a product over a depth of 0, a sum over no elements, an empty
// part of a concatenation. Such operations are rewritten before the generator runs.
#pragma once

#include "ir/module.hpp"

namespace kiln::codegen {

// Shapes must be static. Outputs keep their positions and shapes, and parameters are kept even if unused. If all
// outputs of a kernel are empty there is nothing to do; the runtime does not request such a kernel
// (jit/kernel_groups.hpp).
void replace_empty_operands(module& fusion);

}  // namespace kiln::codegen
