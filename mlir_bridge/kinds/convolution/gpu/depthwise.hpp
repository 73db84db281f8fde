// Depthwise convolution of channels_last images: every output channel sees one input channel. Internal to
// mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

// False, and nothing emitted, where the anchor is no such convolution.
bool emit_depthwise(codegen::kernel_emitter& e);
bool is_depthwise(const codegen::kernel_emitter& e);
// The same where the anchor normalizes the convolution's result (ir/normalized_window.hpp).
bool emit_normalized_depthwise(codegen::kernel_emitter& e);
// Returns the configurations that a tuner may try for such a convolution (window.hpp). `whole_pixels`: its result is
// normalized.
std::vector<codegen::candidate> depthwise_space(codegen::kernel_emitter& e, const instruction& window,
                                                bool whole_pixels = false);

}  // namespace kiln::gpu
