// The generators: one function for each anchor, all of them in one table by operation name. A generator emits complete
// stages that write every output of the cluster; it throws error{unsupported} naming what it cannot do.
#pragma once

#include <string_view>

#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/kinds/generation.hpp"

namespace kiln::cpu {

using namespace codegen;

// A cluster without an anchor.
void emit_map(kernel_emitter& e);
std::vector<candidate> map_choices(kernel_emitter& e);
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

// What a tuner may vary of them.
std::vector<candidate> row_choices(kernel_emitter& e);  // of reduce, softmax and normalize: reduction_space.hpp
std::vector<candidate> attention_space(kernel_emitter& e);
std::vector<candidate> grain_choices(kernel_emitter& e);  // of generators that only use kernel_emitter::parallel

// mlir_bridge/cpu/contraction/
void emit_dot(kernel_emitter& e);
void emit_convolution(kernel_emitter& e);
void emit_transposed_convolution(kernel_emitter& e);
std::vector<candidate> dot_space(kernel_emitter& e);
std::vector<candidate> convolution_space(kernel_emitter& e);
std::vector<candidate> transposed_convolution_space(kernel_emitter& e);

// The row of a cluster's anchor; "" for a cluster without one. Null where the table has none.
const generator_row* find_generator(std::string_view operation);
generation begin_generation(const portable_kernel& kernel, const target_row& target,
                            const kernel_configuration& configuration);

}  // namespace kiln::cpu
