// Attention and RotaryEmbedding of the standard (opset 23 and later), and RotaryEmbedding of onnxruntime.
#include <algorithm>
#include <cmath>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/attention_parts.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns [B, N, S, H] for an input of rank 4, or for [B, S, N*H] with the number of heads from the attribute.
value with_heads(node& n, std::size_t i, std::string_view heads) {
  value x = n.in(i);
  if (x.type().rank() == 4) return x;
  return heads_first(n.b, split_heads(n.b, x, n.integer(heads, 0)));
}

// Returns the mask of keys that are visible by position: query i has position offset + i.
value window_mask(node& n, value offset, const dim& queries, const dim& keys, bool causal) {
  builder& b = n.b;
  value key = b.iota_like(element_type::i64, {queries, keys}, 1);
  value place = b.binary(fn::add, b.iota_like(element_type::i64, {queries, keys}, 0), offset), seen;
  auto narrow = [&](value condition) { seen = seen ? b.binary(fn::logical_and, seen, condition) : condition; };
  std::int64_t left = n.integer("left_window_size", -1), right = n.integer("right_window_size", -1);
  if (causal) narrow(b.binary(fn::less_equal, key, place));
  if (left >= 0) narrow(b.binary(fn::greater_equal, key, b.binary(fn::sub, place, static_cast<double>(left))));
  if (right >= 0) narrow(b.binary(fn::less_equal, key, b.binary(fn::add, place, static_cast<double>(right))));
  return seen;
}

value joined_masks(builder& b, value given, value seen) {
  if (!given || !seen) return given ? given : seen;
  if (given.type().type == element_type::boolean) return b.binary(fn::logical_and, given, seen);
  return b.where(seen, given, b.scalar(given.type().type, -INFINITY));
}

// A mask may be shorter than the keys; the missing part is hidden.
value padded_mask(builder& b, value mask, const dim& keys) {
  const dim& given = mask.type().dims.back();
  if (given == keys || given == dim(1)) return mask;
  bool boolean = mask.type().type == element_type::boolean;
  if (!given.is_static() || !keys.is_static()) {
    if (b.facts().at_least(keys, given))
      return b.pad_axis(mask, static_cast<std::int64_t>(mask.type().rank()) - 1, 0, keys - given, pad_mode::constant_,
                        boolean ? 0 : -INFINITY);
    b.need_equal(given, keys, "the mask ends at '" + given.str() + "', the keys at '" + keys.str() + "'");
    return mask;
  }
  pad op{std::vector<std::int64_t>(mask.type().rank(), 0), std::vector<std::int64_t>(mask.type().rank(), 0),
         pad_mode::constant_, boolean ? 0 : -INFINITY};
  op.after.back() = keys.value() - given.value();
  return b.add(std::move(op), {mask});
}

// inputs: Q, K, V, mask, past key, past value, valid keys per batch entry. outputs: Y, present key, present value,
// scores.
std::vector<value> standard_attention(node& n) {
  builder& b = n.b;
  attention_problem p{with_heads(n, 0, "q_num_heads"), with_heads(n, 1, "kv_num_heads"),
                      with_heads(n, 2, "kv_num_heads")};
  if (n.has(4) != n.has(5)) invalid("past_key and past_value come together");
  const dim queries = p.query.type().dims.at(2), past = n.has(4) ? n.dims(4).at(2) : dim(0);
  if (n.has(4)) p.key = b.add(concat{2}, {n.in(4), p.key}), p.values = b.add(concat{2}, {n.in(5), p.values});
  const value present_values = p.values;  // the values may have a type of their own
  p.values = b.to_type(p.values, p.query.type().type);
  const dim keys = p.key.type().dims.at(2), depth = p.query.type().dims.at(3);
  if (!depth.is_static() && !n.has_attribute("scale")) refuse("the depth of a head must be known");
  p.scale = n.has_attribute("scale") ? n.real("scale", 1) : 1 / std::sqrt(static_cast<double>(depth.value()));
  p.soft_cap = n.real("softcap", 0);
  bool causal = n.integer("is_causal", 0) != 0,
       windows = n.integer("left_window_size", -1) >= 0 || n.integer("right_window_size", -1) >= 0;
  if (n.has(3)) {
    // A mask of integers is added to the scores, like one of floats.
    const bool boolean = n.type(3).type == element_type::boolean;
    p.mask = padded_mask(b, boolean ? n.in(3) : b.to_type(n.in(3), p.query.type().type), keys);
  }
  // The operation's causal mask is aligned with the last key. It matches the operator's mask if the queries are the
  // last rows.
  if (causal && !windows && !n.has(6) && past + queries == keys && !p.mask) p.causal = true;
  else if (n.has(6)) {
    if (n.has(4)) invalid("nonpad_kv_seqlen excludes past_key");
    value valid = b.with_dims(b.to_type(n.in(6), element_type::i64), {n.type(6).elements(), 1, 1, 1});
    value within = b.binary(fn::less, b.iota_like(element_type::i64, {keys}, 0), valid);
    value seen = window_mask(n, b.binary(fn::sub, valid, b.dims_tensor({queries}, 0)), queries, keys, causal);
    p.mask = joined_masks(b, p.mask, seen ? b.binary(fn::logical_and, within, seen) : within);
  } else if (causal || windows) {
    p.mask = joined_masks(b, p.mask, window_mask(n, b.dims_tensor({past}, 0), queries, keys, causal));
  }
  p.zero_unseen = static_cast<bool>(p.mask);
  std::int64_t stage = n.integer("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3) invalid("qk_matmul_output_mode is " + std::to_string(stage) + ", not 0 to 3");
  attention_with_scores done =
      n.wants(3) ? attend_with_scores(b, p, static_cast<score_stage>(stage)) : attention_with_scores{attend(b, p), {}};
  return {n.rank(0) == 4 ? done.sums : join_heads(b, heads_first(b, done.sums)), p.key, present_values, done.scores};
}

// Rotates x [B, N, S, H] or [B, S, N*H]; the result has the same form. If `heads` is 0, the width of the cosines
// determines the depth of a head.
value rotary(node& n, value x, value cos, value sin, std::int64_t heads) {
  builder& b = n.b;
  bool interleaved = n.integer("interleaved", 0) != 0;
  if (x.type().rank() == 4) return heads_first(b, rotated(b, heads_first(b, x), cos, sin, interleaved));
  if (heads == 0) {
    dim depth = cos.type().dims.back() * dim(2), width = x.type().dims.back();
    if (x.type().rank() != 3 || !depth.is_static() || !width.is_static() || depth == dim(0))
      invalid("num_heads is needed for " + x.type().str());
    heads = width.value() / depth.value();
  }
  return join_heads(b, rotated(b, split_heads(b, x, heads), cos, sin, interleaved));
}

// inputs: X, cosines, sines, positions.
std::vector<value> standard_rotary(node& n) {
  value cos = n.in(1), sin = n.in(2);
  if (n.has(3)) cos = rows_at(n.b, cos, n.in(3)), sin = rows_at(n.b, sin, n.in(3));
  return {rotary(n, n.in(0), cos, sin, n.integer("num_heads", 0))};
}

// inputs: X, positions [B, S] or the first one [1], cosines, sines.
std::vector<value> contrib_rotary(node& n) {
  builder& b = n.b;
  if (n.integer("is_packed_batching", 0)) refuse("is_packed_batching=1 is not supported");
  value positions = n.in(1);
  const dim steps = n.dims(0).at(n.rank(0) == 4 ? 2 : 1);
  if (positions.type().rank() == 1)
    positions = b.with_dims(b.binary(fn::add, b.iota_like(positions.type().type, {steps}, 0), positions), {1, steps});
  return {
      rotary(n, n.in(0), rows_at(b, n.in(2), positions), rows_at(b, n.in(3), positions), n.integer("num_heads", 0))};
}

// For each column of the caches, which of the three positions of a token (time, height, width) it depends on.
std::vector<std::int64_t> position_of_columns(node& n, std::int64_t half) {
  const auto sections = n.integers("mrope_section").value_or(std::vector<std::int64_t>{});
  if (sections.size() != 3 || std::ranges::any_of(sections, [](std::int64_t s) { return s < 0; }) ||
      sections[0] + sections[1] + sections[2] != half)
    invalid("mrope_section needs three lengths whose sum is " + std::to_string(half));
  const std::int64_t layout = n.integer("mrope_layout", 0);
  if (layout != 0 && layout != 1) invalid("mrope_layout is " + std::to_string(layout) + ", not 0 or 1");
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t turn = i % 3;
    if (layout == 0) result.push_back(i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2);
    else result.push_back(turn > 0 && i < 3 * sections[static_cast<std::size_t>(turn)] ? turn : 0);
  }
  return result;
}

// inputs: X, positions [3, B, S], cosines, sines.
std::vector<value> multimodal_rotary(node& n) {
  builder& b = n.b;
  if (n.integer("is_packed_batching", 0)) refuse("is_packed_batching=1 is not supported");
  if (n.real("scale", 1) != 1) refuse("a scale other than 1 is not supported");
  const auto positions = n.dims(1);
  if (positions.size() != 3 || !(positions[0] == dim(3)) || n.rank(2) != 2 || !n.dims(2)[1].is_static())
    invalid("positions " + n.type(1).str() + " or cosines " + n.type(2).str() + " have another shape");
  const std::int64_t half = n.dims(2)[1].value();
  std::vector<std::int64_t> columns = position_of_columns(n, half);
  for (std::int64_t i = 0; i < half; ++i)
    columns[static_cast<std::size_t>(i)] = columns[static_cast<std::size_t>(i)] * half + i;
  auto chosen = [&](value cache) {
    std::vector<value> each;
    for (std::int64_t k = 0; k < 3; ++k)
      each.push_back(rows_at(b, cache, b.with_dims(b.slice_axis(n.in(1), 0, k, 1), {positions[1], positions[2]})));
    return b.add(gather{2}, {b.add(concat{2}, each), b.integers(columns)});
  };
  return {rotary(n, n.in(0), chosen(n.in(2)), chosen(n.in(3)), n.integer("num_heads", 0))};
}

constexpr operator_row rows[] = {
    {"Attention", standard_attention, 23},
    {"MRotaryEmbedding", multimodal_rotary, 1, "no packed batches", microsoft_domain},
    {"RotaryEmbedding", standard_rotary, 23},
    {"RotaryEmbedding", contrib_rotary, 1, "no packed batches", microsoft_domain},
};

}  // namespace

std::span<const operator_row> attention_operators() { return rows; }

}  // namespace kiln::onnx_import
