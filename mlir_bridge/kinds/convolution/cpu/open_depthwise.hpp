// Depthwise convolutions of images of open sizes: one input channel for each channel of the result, channels last.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

void emit_open_depthwise(codegen::kernel_emitter& e);

}  // namespace kiln::cpu
