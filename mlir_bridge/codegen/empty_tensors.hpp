// Fusions whose shapes have a dimension of 0. The generators' loops, vectors and tiles suppose that there is something
// to do along every axis, so a result that has elements, though an operand has none (a product over a depth of 0, the
// sum of nothing, an empty part of a concatenation), is written in another way before a generator sees the fusion.
#pragma once

#include "ir/module.hpp"

namespace kiln::codegen {

// Shapes are static. Outputs keep their places and shapes; parameters stay, used or not. A kernel all of whose outputs
// are empty has nothing to do: the runtime does not ask for one (jit/kernel_groups.hpp).
void replace_empty_operands(module& fusion);

}  // namespace kiln::codegen
