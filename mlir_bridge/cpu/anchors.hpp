// The generators: one function for each anchor, all of them in one table by operation name. A generator emits complete stages
// that write every output of the cluster; it throws error{unsupported} naming what it cannot do.
#pragma once

#include <string_view>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

// A cluster without an anchor.
void emit_map(kernel_emitter& e);
// The same for one value of the cluster, into scratch (kernel_emitter::materialize).
void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);

void emit_reduce(kernel_emitter& e);
void emit_arg_reduce(kernel_emitter& e);
void emit_softmax(kernel_emitter& e);
void emit_attention(kernel_emitter& e);
void emit_normalize(kernel_emitter& e);
void emit_pooling(kernel_emitter& e);
void emit_cumulative_sum(kernel_emitter& e);
void emit_top_k(kernel_emitter& e);
void emit_scatter_elements(kernel_emitter& e);
void emit_scatter_nd(kernel_emitter& e);
void emit_recurrent(kernel_emitter& e);

// mlir_bridge/cpu/contraction/
void emit_dot(kernel_emitter& e);
void emit_convolution(kernel_emitter& e);
void emit_transposed_convolution(kernel_emitter& e);

using generator = void (*)(kernel_emitter&);
// Null for an operation that is no anchor.
generator find_generator(std::string_view operation_name);

}  // namespace kiln::cpu
