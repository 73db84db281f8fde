// B rearranged: [batch, rows, depth] with k innermost, the depth filled up with zeros, so that every chunk is one
// aligned load without a condition. A stage of its own, which a runtime runs once at load where B is constant. Internal
// to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// Emits the stage and makes problem.b read what it writes. Steps along k must divide `depth_multiple`.
void pack_b(kernel_emitter& e, contraction_problem& problem, std::int64_t depth_multiple);

}  // namespace kiln::gpu
