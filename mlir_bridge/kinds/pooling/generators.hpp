// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "ir/instruction.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

void emit_pooling(kernel_emitter& e);  // also of open sizes
bool opens_pooling(const instruction& anchor);

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

void emit_pooling(kernel_emitter& e);  // also of open sizes
bool opens_pooling(const instruction& anchor);
std::vector<candidate> pooling_space(kernel_emitter& e);

}  // namespace kiln::gpu
