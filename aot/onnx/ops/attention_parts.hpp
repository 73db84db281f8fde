// Helpers shared by the attention operators: the standard's Attention (opset 23) and onnxruntime's Attention,
// MultiHeadAttention and GroupQueryAttention.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Reshapes [B, S, N*H] to [B, S, N, H].
value split_heads(builder& b, value x, std::int64_t heads);
// Query [B, S, N, H], key and values [B, S, G, H] of inputs 0 to 2 [B, S, heads * H]; without input 1, all three lie in
// input 0 [B, S, (N + 2*G) * H].
struct query_key_values {
  value query, key, values;
};
query_key_values packed_heads(node& n, std::int64_t heads, std::int64_t key_heads);
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

// The stages of the scores, numbered like qk_matmul_output_mode: the scaled product, after the soft cap, after the
// mask, after the softmax.
enum class score_stage : std::uint8_t { product, capped, masked, weights };
struct attention_with_scores {
  value sums;    // what attend() returns
  value scores;  // [B, N, S, T] at the requested stage, in the query's type
};
attention_with_scores attend_with_scores(builder& b, const attention_problem& p, score_stage stage);

// Throws unless query, key and values have rank 4.
void check_ranks(const attention_problem& p);

// Returns scale * Q Kᵀ [B, N, S, T] in the compute type. The query heads of a group are adjacent, so they become rows
// of one product.
value scores_of(builder& b, const attention_problem& p);
// Returns weights * V [B, N, S, V] in the query's type. The weights [B, N, S, T] may have any floating type.
value weighted_sums(builder& b, const attention_problem& p, value weights);

// Applies rotary embedding to x [B, S, N, H]: rotates the first 2*half columns of each head. cos and sin are [B or 1,
// S, half].
value rotated(builder& b, value x, value cos, value sin, bool interleaved);

// RMS normalization of each head of [B, S, N, H], times weights [H].
value normalized_heads(builder& b, value x, value weights, double epsilon);

// Gathers rows of a [positions, half] cache at positions [B, S].
value rows_at(builder& b, value cache, value positions);

}  // namespace kiln::onnx_import
