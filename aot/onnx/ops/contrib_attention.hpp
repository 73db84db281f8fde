// Parts of onnxruntime's attention operators that several of them share.
#pragma once

#include "aot/onnx/ops/attention_parts.hpp"

namespace kiln::onnx_import {

// Joins the padding mask (input `padding`), the attention bias (input `bias`) and the causal mask into the problem's
// mask. Inputs that the node does not have are skipped. `fill` is added to the scores of padding keys.
void add_masks(node& n, attention_problem& p, std::size_t padding, std::size_t bias, bool causal, double fill);

// The attribute `scale`, or 1 / sqrt(depth) if it is 0 or missing.
double attention_scale(node& n, const dim& depth);

// A positive attribute that counts heads.
std::int64_t number_of_heads(node& n, std::string_view attribute = "num_heads");

// Writes the new rows [B, N, S, H] into a buffer [B, N, M, H] at positions start, start + 1, ... `start` is i64[].
value written_into(builder& b, value buffer, value fresh, value start);

// Hides the keys of a shared buffer that are not written yet: those from start + S on, or with `causal` those after
// each query's own position. `start` is i64[], the number of keys before the first query.
void see_only_written(builder& b, attention_problem& p, value start, bool causal);

}  // namespace kiln::onnx_import
