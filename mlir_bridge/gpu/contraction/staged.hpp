// The general generator of contractions: tiles through shared memory. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

namespace kiln::gpu {

// Emits one stage. `tile` must be legal for the target (tile_shape.hpp).
void emit_staged(kernel_emitter& e, const contraction_problem& problem, const tile_shape& tile);

}  // namespace kiln::gpu
