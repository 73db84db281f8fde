// Rearranges B to [batch, rows, depth] with k innermost and the depth padded with zeros, so that every chunk is one
// aligned, unconditional load. This is a separate stage; if B is constant, the runtime runs it once at load. Internal
// to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// Emits the stage and makes problem.b read its result. The depth is padded to a multiple of `depth_multiple`.
void pack_b(kernel_emitter& e, contraction_problem& problem, std::int64_t depth_multiple);

}  // namespace kiln::gpu
