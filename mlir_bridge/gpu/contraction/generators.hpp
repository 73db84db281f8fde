// The generators of this folder, for the table of anchors. Internal to mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

using namespace codegen;

void emit_dot(kernel_emitter& e);
void emit_convolution(kernel_emitter& e);             // channels_last only
void emit_transposed_convolution(kernel_emitter& e);  // channels_last only

// What a tuner may vary of them.
std::vector<candidate> dot_space(kernel_emitter& e);
std::vector<candidate> convolution_space(kernel_emitter& e);
std::vector<candidate> transposed_convolution_space(kernel_emitter& e);

}  // namespace kiln::gpu
