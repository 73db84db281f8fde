// Depthwise convolution (one input channel for each group): vectors of output channels, sums for several pixels of a
// line.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// The anchor is a convolution with as many groups as input channels, channels_last.
void emit_depthwise(kernel_emitter& e);
// The same where the anchor normalizes the convolution's result (ir/normalized_window.hpp). Returns false and emits
// nothing for any other anchor.
bool emit_normalized_depthwise(kernel_emitter& e);
// Returns the configurations that a tuner may try for such a convolution: "vectors" of channels and "pixels" of a tile.
std::vector<candidate> depthwise_space(kernel_emitter& e, const instruction& window);

}  // namespace kiln::cpu
