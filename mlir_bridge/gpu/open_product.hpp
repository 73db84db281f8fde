// Products of an open number of rows (dot, convolution): several versions, each the one that a product of a known
// number of rows would use somewhere. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"

namespace kiln::gpu {

// Finds the product for the copy engine, at these values of the open dimensions (find_dot_problem); null if there is
// none.
using wgmma_finder = std::optional<wgmma_problem> (*)(kernel_emitter& e, const dim_bindings& sample);

// Returns 1 at the sizes of a product at which tiles for large and aligned sizes are worth a version of their own, else
// 0. Only products of which more is open than the number of rows have them.
dim large_sizes(const contraction_problem& problem);

// Emits the stages. Sizes other than the number of rows may be open, too; there is one version then, or where sizes are
// known to be aligned (kernel_emitter::multiples) some for large_sizes().
void emit_open_product(kernel_emitter& e, contraction_problem problem, wgmma_finder find = nullptr);

}  // namespace kiln::gpu
