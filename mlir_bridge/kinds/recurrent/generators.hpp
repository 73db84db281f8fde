// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

void emit_recurrent(kernel_emitter& e);  // also of open time steps and batch

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

void emit_recurrent(kernel_emitter& e);  // also of open time steps and batch

}  // namespace kiln::gpu
