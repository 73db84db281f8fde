// dot of one to four rows and weights that are small integers with one scale, and maybe one offset, for each block of
// the depth: w = (code + offset) * scale. The codes are multiplied as they are; the scale is applied to the sum of a
// block, and the offset to the sum of the row's elements in it, which all columns share.
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

inline constexpr std::int64_t most_block_rows = 4;

// Returns the parts of such weights, the right operand of the anchor, a dot with transpose_b whose sums are f32;
// nullopt for others, and where vectors do not divide a block.
std::optional<block_weights> find_block_weights(const kernel_emitter& e, const dot_sizes& sizes);
void emit_block_dot(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights);

}  // namespace kiln::cpu
