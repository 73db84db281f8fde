// Products of an open number of rows (dot, convolution): several versions, each the one that a product of a known
// number of rows would use somewhere. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"

namespace kiln::gpu {

// Finds the product for the copy engine, at these values of the open dimensions (find_dot_problem); null if there is
// none.
using wgmma_finder = std::optional<wgmma_problem> (*)(kernel_emitter& e, const dim_bindings& sample);

// Emits the stages. Sizes other than the number of rows may be open, too; there is one version then.
void emit_open_product(kernel_emitter& e, contraction_problem problem, wgmma_finder find = nullptr);

}  // namespace kiln::gpu
