// Weights that are small integers with one scale, and maybe one offset, for each block of the depth:
// w = (code + offset) * scale.
#pragma once

#include <optional>

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

struct block_weights {
  // [n, blocks, block] in memory (maybe after axes of length 1): u4, i4, u8 or i8.
  value codes;
  // Of the dims of `codes`, equal along the last axis.
  value scales;
  std::optional<value> offsets;
  bool subtracts_offset = false;
  std::int64_t block = 0;
};

// Returns the parts of such weights, the right operand of the anchor, a dot with transpose_b whose sums are f32;
// nullopt for others, and where vectors do not divide a block.
std::optional<block_weights> find_block_weights(const kernel_emitter& e, const dot_sizes& sizes);

// The scales or offsets of `count` consecutive blocks of a column, from block `first` on, as f32.
Value of_blocks(kernel_emitter& e, value v, Value column, Value first, std::int64_t count = 1);

// Divides 2 * lanes consecutive elements, given as two vectors, into the even and the odd ones: the order in which
// codes of 4 bits come out of their bytes.
values even_and_odd(code_builder& code, Value low, Value high);

}  // namespace kiln::cpu
