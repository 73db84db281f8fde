// Kernels that must not start before their predecessors have ended (dependent launch). Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::gpu {

// Keeps the kernel of the open stage from starting early, on targets where it would. For kernels with large workgroups,
// one for each compute unit: they would crowd on the units that a product with fewer workgroups leaves free.
void start_after_predecessors(codegen::kernel_emitter& e);

}  // namespace kiln::gpu
