// Rearranges B to [batch, rows, depth] with k innermost and the depth padded with zeros, so that every chunk is one
// aligned, unconditional load. This is a separate stage; if B is constant, the runtime runs it once at load, and
// kernels for all sizes share the result (ir/shared_layout.hpp). Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// Emits the stage and makes problem.b read its result, which is returned. `weights`: the value that B is, or null.
buffer pack_b(kernel_emitter& e, contraction_problem& problem, value weights);

// Emits the stage for `weights`, a constant [depth, rows] of 16 bits or f32, and returns its result.
buffer pack_weights(kernel_emitter& e, value weights);

}  // namespace kiln::gpu
