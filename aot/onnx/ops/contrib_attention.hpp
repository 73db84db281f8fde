// Parts of onnxruntime's attention operators that several of them share.
#pragma once

#include "aot/onnx/ops/attention_parts.hpp"

namespace kiln::onnx_import {

// Joins the padding mask (input `padding`), the attention bias (input `bias`) and the causal mask into the problem's
// mask. Inputs that the node does not have are skipped. `fill` is added to the scores of padding keys.
void add_masks(node& n, attention_problem& p, std::size_t padding, std::size_t bias, bool causal, double fill);

// Returns the attribute `scale`, or 1 / sqrt(depth) if it is 0 or missing.
double attention_scale(node& n, const dim& depth);

// Returns an attribute that counts heads. Refuses numbers below 1.
std::int64_t number_of_heads(node& n, std::string_view attribute = "num_heads");

// Returns the buffer [B, N, M, H] with the new rows [B, N, S, H] written at positions start, start + 1, ... `start` is
// i64[].
value written_into(builder& b, value buffer, value fresh, value start);

// Masks the keys of a shared buffer that are not written yet. Without `causal` these are the keys from start + S on;
// with it, each query also ignores keys after its own position. `start` is i64[], the number of keys before the first
// query.
void see_only_written(builder& b, attention_problem& p, value start, bool causal);

}  // namespace kiln::onnx_import
