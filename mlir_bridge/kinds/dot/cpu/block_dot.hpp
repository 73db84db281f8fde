// dot of one to four rows and weights in blocks (block_weights.hpp). The codes are multiplied as they are; the scale is
// applied to the sum of a block, and the offset to the sum of the row's elements in it, which all columns share.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/block_weights.hpp"

namespace kiln::cpu {

inline constexpr std::int64_t most_block_rows = 4;

void emit_block_dot(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights);

}  // namespace kiln::cpu
