// Large matrix products on sm_90a: the tensor copy engine fills a ring of stages in shared memory, warpgroups multiply
// out of it, workgroups stay for several tiles. f16 and bf16 with f32 sums, 8-bit integers with i32 sums. Internal to
// mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

using namespace codegen;

// Emit the whole kernel of a dot, or of a convolution, and return true; or emit nothing and return false: the target
// has no tensor copy, an operand is computed rather than in memory or has rows that are no multiple of 16 bytes, or
// other instructions are expected to be faster.
bool try_wgmma_dot(kernel_emitter& e);
bool try_wgmma_convolution(kernel_emitter& e);

// What a tuner may try on the fusion's anchor; empty where the functions above return false in any case.
std::vector<candidate> wgmma_space(kernel_emitter& e);

}  // namespace kiln::gpu
