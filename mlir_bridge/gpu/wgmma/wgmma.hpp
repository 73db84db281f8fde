// Large matrix products on sm_90a with warpgroup matrix instructions. The tensor copy engine fills a ring buffer of
// stages in shared memory, warpgroups multiply from it, and workgroups are persistent: each computes several tiles.
// Supports f16 and bf16 with f32 sums, and 8-bit integers with i32 sums. Internal to mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/contraction/joined_product.hpp"

namespace kiln::gpu {

using namespace codegen;

// Returns true if the target has the instructions and the copies.
bool has_wgmma(const kernel_emitter& e);

// Emits the whole kernel of a dot or of a convolution and returns true. Returns false and emits nothing if the target
// has no tensor copy engine, if an operand is computed rather than in memory or has rows that are not a multiple of 16
// bytes, or if other instructions are expected to be faster. With `joined`: of few rows only, together with the inner
// anchors.
bool try_wgmma_dot(kernel_emitter& e, const joined_product* joined = nullptr);
bool try_wgmma_convolution(kernel_emitter& e);

// Returns the tuning space for the fusion's anchor; empty if the functions above always return false.
std::vector<candidate> wgmma_space(kernel_emitter& e);

}  // namespace kiln::gpu
