// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

void emit_reduce(kernel_emitter& e);
void emit_open_reduce(kernel_emitter& e);
void emit_arg_reduce(kernel_emitter& e);
void emit_open_arg_reduce(kernel_emitter& e);

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

void emit_reduce(kernel_emitter& e);
void emit_open_reduce(kernel_emitter& e);
void emit_arg_reduce(kernel_emitter& e);
std::vector<candidate> reduce_space(kernel_emitter& e);
std::vector<candidate> arg_reduce_space(kernel_emitter& e);

}  // namespace kiln::gpu
