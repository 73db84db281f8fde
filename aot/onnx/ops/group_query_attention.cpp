// onnxruntime's GroupQueryAttention.
#include <limits>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/contrib_attention.hpp"
#include "aot/onnx/ops/quantized_cache.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Positions of the queries of each batch entry in its sequence of keys.
struct places {
  value past;      // i64[B, 1]: number of keys before the first query
  value total;     // i64[B, 1]: number of valid keys
  value fresh;     // i64[B, 1]: number of new keys; the rows after them are padding
  value of_query;  // i64[B, S]
};

places places_of(node& n, const dim& batch, const dim& queries) {
  builder& b = n.b;
  if (!(n.type(5).elements() == batch)) invalid("seqlens_k is " + n.type(5).str() + " for a batch of " + batch.str());
  places at;
  at.total = b.binary(fn::add, b.with_dims(b.to_type(n.in(5), element_type::i64), {batch, 1}), 1.0);
  at.fresh = n.has(16) ? b.with_dims(b.to_type(n.in(16), element_type::i64), {batch, 1})
                       : b.broadcast_to(b.dims_tensor({queries}, 0), {batch, 1});
  at.past = b.binary(fn::max, b.binary(fn::sub, at.total, at.fresh), 0.0);
  at.of_query = b.binary(fn::add, b.iota_like(element_type::i64, {1, queries}, 1), at.past);
  return at;
}

// Returns, for each batch entry, the valid part of its past, then the new rows, then zeros. past [B, G, P, H], fresh
// [B, G, S, H]. The result has P rows if these hold all keys, otherwise P + S.
value appended(node& n, value past, value fresh, const places& at) {
  builder& b = n.b;
  const auto p = past.type().dims;
  value both = b.add(concat{2}, {past, fresh});
  auto dims = both.type().dims;
  const dim batch = dims.at(0), last = dims.at(2) - dim(1);
  auto total = n.has(6) ? b.known(n.in(6)) : std::nullopt;
  if (total && total->size() == 1 && b.facts().at_least(p[2], total->front())) dims.at(2) = p[2];
  const dim keys = dims.at(2);
  value key = b.iota_like(element_type::i64, {1, keys}, 1);
  // Number of rows of the past that are not valid.
  value gap = b.binary(fn::sub, b.dims_tensor({p[2]}, 0), at.past);
  value index = b.binary(fn::add, key, b.where(b.binary(fn::less, key, at.past), b.scalar(element_type::i64, 0), gap));
  index = b.binary(fn::min, index, b.dims_tensor({last}, 0));
  value rows = b.add(gather_elements{2}, {both, b.broadcast_to(b.with_dims(index, {batch, 1, keys, 1}), dims)});
  value written = b.binary(fn::less, key, b.binary(fn::add, at.past, at.fresh));
  return b.where(b.with_dims(written, {batch, 1, keys, 1}), rows, b.scalar(rows.type().type, 0));
}

// A sliding-window cache (sliding_window_cache=1), as onnxruntime's documentation of the operator defines it. The cache
// has C rows, the window W. After T positions, the first L rows hold the last L positions. When the cache is full, G =
// C
// - W + 1 old positions are dropped at once, so L = T - G * ceil(max(T - C, 0) / G).
struct sliding_cache {
  value both;       // [B, G, C + S, H]: the rows of the cache, then the new ones
  value position;   // i64[B, C + S]: of these rows; very large for those that hold none
  value kept_rows;  // i64[B, C]: the rows of `both` that the cache holds afterwards
};

value resident(builder& b, value total, const dim& room, std::int64_t window) {
  const value step = b.dims_tensor({room - dim(window - 1)}, 0);
  value excess = b.binary(fn::max, b.binary(fn::sub, total, b.dims_tensor({room}, 0)), 0.0);
  value steps = b.binary(fn::div, b.binary(fn::sub, b.binary(fn::add, excess, step), 1.0), step);
  return b.binary(fn::sub, total, b.binary(fn::mul, steps, step));
}

sliding_cache slide(builder& b, value past, value fresh, const places& at, std::int64_t window) {
  const dim room = past.type().dims.at(2), queries = fresh.type().dims.at(2);
  const value before = resident(b, at.past, room, window);
  const value row = b.iota_like(element_type::i64, {1, room}, 1),
              next = b.iota_like(element_type::i64, {1, queries}, 1);
  const value none = b.scalar(element_type::i64, static_cast<double>(std::int64_t{1} << 40));
  const auto placed = [&](value index, value first, value count) {
    return b.where(b.binary(fn::less, index, count), b.binary(fn::add, index, first), none);
  };
  sliding_cache result;
  result.both = b.add(concat{2}, {past, fresh});
  result.position =
      b.add(concat{1}, {placed(row, b.binary(fn::sub, at.past, before), before), placed(next, at.past, at.fresh)});
  const value total = b.binary(fn::add, at.past, at.fresh);
  // Relative to the first new row.
  value kept = b.binary(fn::sub, b.binary(fn::add, row, at.fresh), resident(b, total, room, window));
  kept = b.binary(fn::add, kept, b.where(b.binary(fn::less, kept, 0.0), before, b.dims_tensor({room}, 0)));
  const value last = b.dims_tensor({room + queries - dim(1)}, 0);
  result.kept_rows = b.binary(fn::min, b.binary(fn::max, kept, 0.0), last);
  return result;
}

value rows_of(builder& b, const sliding_cache& cache, value past) {
  const auto dims = past.type().dims;
  value index = b.with_dims(cache.kept_rows, {dims.at(0), 1, dims.at(2), 1});
  return b.add(gather_elements{2}, {cache.both, b.broadcast_to(index, dims)});
}

// The least room is the window; whoever runs the model chooses the room (generation/decoder_step.cpp).
void record_window(node& n, const dim& room, std::int64_t window) {
  if (!room.is_symbol()) return;
  std::string& least = n.owner.state().result.metadata["cache_window:" + room.str()];
  if (least.empty() || std::stoll(least) < window) least = std::to_string(window);
}

double norm_epsilon(const node& n, std::string_view name) { return n.real(name, n.real("qk_norm_epsilon", 1e-6)); }

value group_rotated(node& n, value x, const places& at) {
  builder& b = n.b;
  value positions;
  if (n.has(9)) {
    positions = b.to_type(n.in(9), element_type::i64);
    // For the first prompt the operator reads only the first position and counts up from it.
    const auto dims = positions.type().dims;
    if (n.has(6) && dims.size() == 2) {
      value start = b.with_dims(b.slice_axis(b.slice_axis(positions, 0, 0, 1), 1, 0, 1), {});
      value counted_up = b.binary(fn::add, b.iota_like(element_type::i64, {1, dims.at(1)}, 1), start);
      value total = b.with_dims(b.to_type(n.in(6), element_type::i64), {});
      value is_first = b.binary(fn::equal, total, b.dims_tensor({x.type().dims.at(1)}, 0));
      positions = b.where(is_first, b.broadcast_to(counted_up, dims), positions);
    }
  } else {
    value counts = b.binary(fn::less, at.of_query, at.total);
    positions = b.where(counts, at.of_query, b.scalar(element_type::i64, 1));
  }
  return rotated(b, x, rows_at(b, n.in(7), positions), rows_at(b, n.in(8), positions),
                 n.integer("rotary_interleaved", 0) != 0);
}

// inputs: query [B, S, N*H] (or query, key and value concatenated), key, value, past key, past value, index of the last
// key of each batch entry, total number of keys, cosines, sines, positions, attention bias, sink, scales
// of the cache of keys and of that of values, weights of the norms of query and key, number of new keys of each batch
// entry. outputs: [B, S, N*H], present key, present value, scores.
std::vector<value> group_query_attention(node& n) {
  builder& b = n.b;
  std::int64_t heads = number_of_heads(n), key_heads = number_of_heads(n, "kv_num_heads");
  auto [query, key, values] = packed_heads(n, heads, key_heads);
  const dim batch = query.type().dims.at(0), queries = query.type().dims.at(1);
  places at = places_of(n, batch, queries);
  if (n.has(14) != n.has(15)) invalid("q_norm_weight and k_norm_weight come together");
  if (n.has(14))
    query = normalized_heads(b, query, n.in(14), norm_epsilon(n, "q_norm_epsilon")),
    key = normalized_heads(b, key, n.in(15), norm_epsilon(n, "k_norm_epsilon"));
  if (n.integer("do_rotary", 0)) query = group_rotated(n, query, at), key = group_rotated(n, key, at);
  attention_problem p{heads_first(b, query), heads_first(b, key), heads_first(b, values)};
  if (n.has(3) != n.has(4)) invalid("past_key and past_value come together");
  const std::int64_t window = n.integer("local_window_size", -1);
  const bool slides = n.integer("sliding_window_cache", 0) != 0;
  if (slides && (!n.has(3) || window < 1)) invalid("sliding_window_cache=1 needs a past and a local_window_size");
  if (slides && n.has(10)) refuse("input 10 (attention_bias) with sliding_window_cache=1 is not supported");
  // A quantized cache holds the new rows, too, and attention reads all of them from it.
  const auto key_format = cache_format_of(n, 3, 12, "k_quant_type", key_heads),
             value_format = cache_format_of(n, 4, 13, "v_quant_type", key_heads);
  const element_type wide = p.key.type().type;
  if (key_format) p.key = stored(b, p.key, *key_format);
  if (value_format) p.values = stored(b, p.values, *value_format);
  value present_key, present_values, order;
  if (slides) {
    record_window(n, n.dims(3)[2], window);
    const sliding_cache kept = slide(b, n.in(3), p.key, at, window),
                        values_kept = slide(b, n.in(4), p.values, at, window);
    present_key = rows_of(b, kept, n.in(3)), present_values = rows_of(b, values_kept, n.in(4));
    p.key = kept.both, p.values = values_kept.both;
    order = b.with_dims(kept.position, {batch, 1, 1, p.key.type().dims.at(2)});
  } else {
    if (n.has(3)) p.key = appended(n, n.in(3), p.key, at), p.values = appended(n, n.in(4), p.values, at);
    present_key = p.key, present_values = p.values;
    order = b.iota_like(element_type::i64, {p.key.type().dims.at(2)}, 0);
  }
  if (key_format) p.key = loaded(b, p.key, *key_format, wide);
  if (value_format) p.values = loaded(b, p.values, *value_format, wide);
  p.scale = attention_scale(n, p.query.type().dims.at(3));
  p.soft_cap = n.real("softcap", 0);
  // Query i of a batch entry attends to the keys up to its own position, or only to the last `window` of these.
  value place = b.with_dims(at.of_query, {batch, 1, queries, 1});
  value last = b.with_dims(b.binary(fn::sub, at.total, 1.0), {batch, 1, 1, 1});
  if (n.integer("causal", 1)) last = b.binary(fn::min, place, last);
  value seen = b.binary(fn::less_equal, order, last);
  if (window >= 0)
    seen = b.binary(fn::logical_and, seen,
                    b.binary(fn::greater, order, b.binary(fn::sub, place, static_cast<double>(window))));
  p.mask = seen;
  if (n.has(10))
    p.mask = b.where(seen, b.to_type(n.in(10), element_type::f32),
                     b.scalar(element_type::f32, -std::numeric_limits<double>::infinity()));
  if (n.has(11)) p.sink = n.in(11);
  else if (n.integer("smooth_softmax", 0) > 0) p.sink = b.scalar(element_type::f32, 0);
  value sums, scores;
  if (std::int64_t stage = n.integer("qk_output", 0); stage != 0 && n.wants(3)) {
    if (stage != 1 && stage != 2) invalid("qk_output is " + std::to_string(stage) + ", not 1 or 2");
    auto both = attend_with_scores(b, p, stage == 1 ? score_stage::capped : score_stage::weights);
    sums = both.sums;
    scores = b.where(b.broadcast_to(seen, both.scores.type().dims), both.scores, b.scalar(both.scores.type().type, 0));
  } else {
    n.refuse_outputs_from(3, "the scores, with qk_output=0");
    sums = attend(b, p);
  }
  std::vector<value> results{join_heads(b, heads_first(b, sums))};
  if (n.outputs() > 1) results.push_back(present_key);
  if (n.outputs() > 2) results.push_back(present_values);
  if (n.outputs() > 3) results.push_back(scores);
  return results;
}

constexpr operator_row rows[] = {
    {"GroupQueryAttention", group_query_attention, 1,
     "the present has the positions of the past if they hold all keys, else those of past and input", microsoft_domain},
};

}  // namespace

std::span<const operator_row> group_query_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
