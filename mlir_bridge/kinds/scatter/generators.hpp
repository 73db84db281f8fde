// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "ir/instruction.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// Also of open sizes.
void emit_scatter_elements(kernel_emitter& e);
void emit_scatter_nd(kernel_emitter& e);
bool opens_scatter_nd(const instruction& anchor);

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

// Also of open sizes.
void emit_scatter_elements(kernel_emitter& e);
void emit_scatter_nd(kernel_emitter& e);
bool opens_scatter_nd(const instruction& anchor);

}  // namespace kiln::gpu
