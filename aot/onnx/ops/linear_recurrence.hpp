// The recurrence of linear attention: a state of fixed size for each head, which every step decays, updates and reads.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The tensors that the recurrence reads, one slice for each time step. T is the axis of time; the inputs of a single
// step do not have it.
struct recurrence_inputs {
  value query;   // [T, B, G, N/G, K], scaled
  value key;     // [T, B, G, 1, K]
  value values;  // [T, B, G, 1, V]
  value decay;   // [T, B, G, 1 or K, 1], a factor; may be empty
  value beta;    // [T, B, 1 or G, 1, 1]; may be empty
};

struct recurrence_result {
  value state, sums;  // [B, G, K, V], [B, G, N/G, V]
};

// Runs all steps from `state` [B, G, K, V]: in a loop, or without one if there is a single step. The result's sums are
// [T, B, G, N/G, V].
recurrence_result run_recurrence(node& n, const recurrence_inputs& x, value state);

// Repeats each of the heads of x [B, T, heads, K], so that there are `groups`: [B, T, groups, 1, K].
value shared_by_heads(builder& b, value x, std::int64_t groups);

// max(x, 0) + log(1 + exp(-|x|)): does not overflow.
value softplus(builder& b, value x);

}  // namespace kiln::onnx_import
