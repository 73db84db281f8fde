// dot of few rows and weights of 4 bits in blocks (block_weights.hpp), by the products of bytes that a
// processor has (vpdpbusd). A row's element is an integer of 24 bits with one scale for each block, which is as exact
// as an f32 sum needs, or of 16 or 8 bits where the product allows it (dot::left_bits); it has three, two or one digits
// of 8 bits, from -128 to 127, and each of them is multiplied by the codes. The scales are applied to the sums of eight
// elements.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/block_weights.hpp"

namespace kiln::cpu {

// Whether emit_digit_dot() can compute the product.
bool is_digit_dot(const kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights);
void emit_digit_dot(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights);

}  // namespace kiln::cpu
