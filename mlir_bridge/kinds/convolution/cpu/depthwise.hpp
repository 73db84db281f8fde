// Depthwise convolution (one input channel for each group) and convolution of groups with few channels: vectors of
// output channels, sums for several pixels of a line.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// Whether the anchor, a convolution, is computed so: it has one channel in each of several groups, or it is of f32 and
// several groups with few channels fit into a vector.
bool suits_depthwise(const kernel_emitter& e);
// Such a convolution, channels_last.
void emit_depthwise(kernel_emitter& e);
// The same where the anchor normalizes the convolution's result (ir/normalized_window.hpp). Returns false and emits
// nothing for any other anchor.
bool emit_normalized_depthwise(kernel_emitter& e);
// Returns the configurations that a tuner may try for such a convolution: "vectors" of channels and "pixels" of a tile.
std::vector<candidate> depthwise_space(kernel_emitter& e, const instruction& window);

}  // namespace kiln::cpu
