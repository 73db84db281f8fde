// Products of few rows of open number. Internal to mlir_bridge/kinds/dot.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// Whether emit_few_rows() can compute the anchor: the rows are open, the weights known and dense, and both factors are
// in memory.
bool reads_few_rows(const kernel_emitter& e);
// Emits the stage for few rows, which has no workgroups at sizes with more (codegen/few_rows.hpp).
void emit_few_rows(kernel_emitter& e, const contraction_problem& problem);

}  // namespace kiln::gpu
