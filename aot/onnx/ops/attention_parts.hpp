// What the attention operators share: the standard's (opset 23) and onnxruntime's Attention, MultiHeadAttention and
// GroupQueryAttention.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// [B, S, N*H] as [B, S, N, H].
value split_heads(builder& b, value x, std::int64_t heads);
// [B, S, N, H] as [B, N, S, H] and back.
value heads_first(builder& b, value x);
// [B, S, N, H] as [B, S, N*H].
value join_heads(builder& b, value x);

// One attention over query [B, N, S, H], key [B, G, T, H] and value [B, G, T, V]; N is a multiple of G.
struct attention_problem {
  value query, key, values;
  double scale = 1;
  bool causal = false;  // query i sees keys up to i + T - S
  value mask = {};  // boolean (true: seen) or floating (added to the scores), broadcasts to [B, N, S, T]; may be empty
  double soft_cap = 0;  // scores become cap * tanh(score / cap); 0: they stay
  value sink = {};      // [N] or a scalar: one more score in the softmax of each head, that has no value; may be empty
  bool zero_unseen = false;  // a query that sees no key gives 0 instead of NaN
};
// [B, N, S, V].
value attend(builder& b, const attention_problem& p);

// x [B, S, N, H]: the first 2*cos columns of each head rotated; cos and sin are [B or 1, S, half].
value rotated(builder& b, value x, value cos, value sin, bool interleaved);

// Rows of a [positions, half] cache at positions [B, S].
value rows_at(builder& b, value cache, value positions);

}  // namespace kiln::onnx_import
