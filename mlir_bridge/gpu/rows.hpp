// Generators of every anchor that is neither matrix work nor attention. Internal to mlir_bridge/gpu; listed in
// anchors.cpp.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

void emit_softmax(codegen::kernel_emitter& e);
void emit_normalize(codegen::kernel_emitter& e);
void emit_reduce(codegen::kernel_emitter& e);
void emit_arg_reduce(codegen::kernel_emitter& e);
void emit_pooling(codegen::kernel_emitter& e);
void emit_cumulative_sum(codegen::kernel_emitter& e);
void emit_top_k(codegen::kernel_emitter& e);
void emit_scatter_elements(codegen::kernel_emitter& e);
void emit_scatter_nd(codegen::kernel_emitter& e);
void emit_recurrent(codegen::kernel_emitter& e);

// What a tuner may vary of them.
std::vector<codegen::candidate> softmax_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> normalize_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> reduce_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> arg_reduce_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> pooling_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> cumulative_sum_space(codegen::kernel_emitter& e);
std::vector<codegen::candidate> top_k_space(codegen::kernel_emitter& e);

}  // namespace kiln::gpu
