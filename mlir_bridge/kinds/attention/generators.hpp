// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "ir/instruction.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

void emit_attention(kernel_emitter& e);
void emit_open_attention(kernel_emitter& e);
std::vector<candidate> attention_space(kernel_emitter& e);

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

void emit_attention(kernel_emitter& e);
void emit_open_attention(kernel_emitter& e);
bool opens_attention(const instruction& anchor);  // depths are static; heads, too, or keys have as many
std::vector<candidate> attention_space(kernel_emitter& e);

}  // namespace kiln::gpu
