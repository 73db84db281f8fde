// Functions for all generators of contractions, before one is chosen. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

namespace kiln::gpu {

// Returns what the choice of a tile depends on; open sizes have usual values.
problem_size staged_size(kernel_emitter& e, const contraction_problem& problem);
// Rearranges B if the problem says so (packing.hpp), and returns the result.
std::optional<buffer> pack_operand(kernel_emitter& e, contraction_problem& problem);

}  // namespace kiln::gpu
