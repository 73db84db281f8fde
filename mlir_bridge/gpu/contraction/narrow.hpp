// Products of a few rows (decoding, batches of one): every weight is read once, straight from memory into the lanes
// that multiply it, by waves that share the depth. What limits them is memory. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

namespace kiln::gpu {

// Emits the stage and returns true, or emits nothing: too many rows, a short depth, or a B whose rows are scattered.
bool try_narrow(kernel_emitter& e, const contraction_problem& problem);

// The tuner's choices: "narrow_columns", "narrow_waves" and, where there are asynchronous copies, "narrow_stages"; none
// where the function above emits nothing.
std::vector<candidate> narrow_space(kernel_emitter& e, const contraction_problem& problem);

}  // namespace kiln::gpu
