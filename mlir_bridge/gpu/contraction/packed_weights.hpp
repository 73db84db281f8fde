// Weights of 4 bits whose groups along k share a scale: convert(codes) * scales. On NVIDIA GPUs a product of few rows
// multiplies the codes and applies a scale to the sums of its group: an instruction for many weights instead of one for
// two. The sums are those of exact products; only they are rounded. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::gpu {

using namespace codegen;

// Plain data.
struct packed_weights {
  value codes;   // i4 or u4[n, groups, group], or [n, k] if a row is one group
  value scales;  // f16, with a last dim of 1
  std::int64_t rows = 0, depth = 0, group = 0;
};

// Returns the parts of a matrix [n, k] that is computed like that from tensors in memory; otherwise nullopt.
std::optional<packed_weights> find_packed_weights(const kernel_emitter& e, value b);

// 32 codes of a row, and the scale of their group in f32.
struct loaded_codes {
  Value words;  // four i32
  Value scale;
};
// Loads the codes of `row` from `k` on, a multiple of 32. Rows beyond the last one get codes of any row.
loaded_codes load_codes(kernel_emitter& e, evaluator& ev, const packed_weights& weights, Value row, Value k);
// Returns the eight codes of a word as a chunk of f16, in pairs of elements: 0 and 4, 1 and 5, 2 and 6, 3 and 7.
Value chunk_of_codes(code_builder& code, Value word, bool is_signed);
// Puts the elements of a chunk of f16 into the same order.
Value in_pairs(code_builder& code, Value chunk);

}  // namespace kiln::gpu
