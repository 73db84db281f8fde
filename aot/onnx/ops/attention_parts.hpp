// Helpers shared by the attention operators: the standard's Attention (opset 23) and onnxruntime's Attention,
// MultiHeadAttention and GroupQueryAttention.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Reshapes [B, S, N*H] to [B, S, N, H].
value split_heads(builder& b, value x, std::int64_t heads);
// Transposes [B, S, N, H] to [B, N, S, H], or back.
value heads_first(builder& b, value x);
// Reshapes [B, S, N, H] to [B, S, N*H].
value join_heads(builder& b, value x);

// One attention over query [B, N, S, H], key [B, G, T, H] and value [B, G, T, V]. N is a multiple of G.
struct attention_problem {
  value query, key, values;
  double scale = 1;
  bool causal = false;  // query i sees keys up to i + T - S
  // Boolean (true: visible) or floating (added to the scores). Broadcasts to [B, N, S, T]. May be empty.
  value mask = {};
  // If not 0, scores become cap * tanh(score / cap).
  double soft_cap = 0;
  // [N] or a scalar: an additional score in each head's softmax, without a value row. May be empty.
  value sink = {};
  // A query that sees no key gives 0 instead of NaN.
  bool zero_unseen = false;
};
// Returns [B, N, S, V].
value attend(builder& b, const attention_problem& p);

// Applies rotary embedding to x [B, S, N, H]: rotates the first 2*half columns of each head. cos and sin are [B or 1,
// S, half].
value rotated(builder& b, value x, value cos, value sin, bool interleaved);

// Gathers rows of a [positions, half] cache at positions [B, S].
value rows_at(builder& b, value cache, value positions);

}  // namespace kiln::onnx_import
