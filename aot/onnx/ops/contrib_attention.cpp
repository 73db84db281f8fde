// onnxruntime's Attention, MultiHeadAttention and GroupQueryAttention.
#include <cmath>
#include <limits>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/attention_parts.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// The finite number that onnxruntime adds to scores that a causal mask hides.
double lowest(element_type type) { return type == element_type::f16 ? -65504 : -std::numeric_limits<float>::max(); }

// Converts a padding mask to an f32 addend for the scores that broadcasts to [B, N, S, T]: 0 for a valid key, `fill`
// for a padding key. The dims of the mask determine its form: [B, T], [B, S, T], end positions of the keys [B], or end
// and start positions [2*B].
value padding_scores(node& n, value mask, const dim& batch, const dim& queries, const dim& keys, double fill) {
  builder& b = n.b;
  const auto dims = mask.type().dims;
  auto added = [&](value kept) {
    return b.where(kept, b.scalar(element_type::f32, 0), b.scalar(element_type::f32, fill));
  };
  if (dims.size() == 2 && dims[1] == keys)
    return added(b.binary(fn::greater, b.with_dims(mask, {dims[0], 1, 1, keys}), 0.0));
  if (dims.size() == 3 && dims[1] == queries && dims[2] == keys)
    return added(b.binary(fn::greater, b.with_dims(mask, {dims[0], 1, queries, keys}), 0.0));
  if (dims.size() == 1 && (dims[0] == batch || dims[0] == batch * dim(2))) {
    value key = b.iota_like(mask.type().type, {keys}, 0);
    bool starts = !(dims[0] == batch);
    if (starts && !batch.is_static())
      refuse("a mask of starts and ends needs a number for dimension '" + batch.str() +
             "'; give it a value with --dim");
    auto bounds = [&](std::int64_t part) {
      return b.with_dims(starts ? b.slice_axis(mask, 0, part * batch.value(), batch) : mask, {batch, 1, 1, 1});
    };
    value kept = b.binary(fn::less, key, bounds(0));
    if (starts) kept = b.binary(fn::logical_and, kept, b.binary(fn::greater_equal, key, bounds(1)));
    return added(kept);
  }
  refuse("a mask " + mask.type().str() +
         " is not supported, only [batch], [2*batch], [batch, keys] and [batch, queries, keys]");
}

// Joins the masks of Attention and MultiHeadAttention into one. The operation's own causal mask is used if there is no
// other mask.
void add_masks(node& n, attention_problem& p, std::size_t padding, std::size_t bias, bool causal, double fill) {
  builder& b = n.b;
  const auto q = p.query.type().dims;
  const dim keys = p.key.type().dims[2];
  if (n.has(padding)) p.mask = padding_scores(n, n.in(padding), q[0], q[2], keys, fill);
  if (causal && p.mask) {
    value key = b.iota_like(element_type::i64, {q[2], keys}, 1),
          place = b.iota_like(element_type::i64, {q[2], keys}, 0);
    value seen = b.binary(fn::less_equal, b.binary(fn::sub, key, place), b.dims_tensor({keys - q[2]}, 0));
    p.mask = b.where(seen, p.mask, b.scalar(element_type::f32, lowest(p.query.type().type)));
  } else {
    p.causal = causal;
  }
  if (n.has(bias)) {
    value added = b.to_type(n.in(bias), element_type::f32);
    p.mask = p.mask ? b.binary(fn::add, p.mask, added) : added;
  }
}

double scale_of(node& n, const dim& depth) {
  double given = n.real("scale", 0);
  if (given != 0) return given;
  if (!depth.is_static()) refuse("the depth of a head must be known");
  return 1 / std::sqrt(static_cast<double>(depth.value()));
}

std::int64_t number_of_heads(node& n, std::string_view attribute = "num_heads") {
  std::int64_t heads = n.integer(attribute, 0);
  if (heads < 1) invalid(std::string(attribute) + " is " + std::to_string(heads));
  return heads;
}

// inputs: X [B, S, D], weights [D, Q+K+V], bias, mask, past [2, B, N, P, H], attention bias, past length. outputs: [B,
// S, V], present.
std::vector<value> contrib_attention(node& n) {
  builder& b = n.b;
  if (n.has(6) || n.integer("past_present_share_buffer", 0)) refuse("past_present_share_buffer=1 is not supported");
  if (n.integer("do_rotary", 0)) refuse("do_rotary=1 is not supported");
  std::int64_t heads = number_of_heads(n);
  if (n.rank(0) != 3 || n.rank(1) != 2 || !n.dims(1)[1].is_static())
    invalid("needs an input of rank 3 and weights of rank 2, not " + n.type(0).str() + " and " + n.type(1).str());
  auto columns = n.dims(1)[1].value();
  std::vector<std::int64_t> sizes =
      n.integers("qkv_hidden_sizes").value_or(std::vector<std::int64_t>{columns / 3, columns / 3, columns / 3});
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] ||
      sizes[0] + sizes[1] + sizes[2] != columns)
    invalid("qkv_hidden_sizes do not fit the weights " + n.type(1).str());
  value product = matmul(b, n.in(0), n.in(1), n.type(0).type);
  if (n.has(2)) product = b.binary(fn::add, product, n.in(2));
  std::int64_t start = 0;
  auto part = [&](std::size_t i) {
    value v = heads_first(b, split_heads(b, b.slice_axis(product, 2, start, sizes[i]), heads));
    start += sizes[i];
    return v;
  };
  attention_problem p{part(0), part(1), part(2)};
  if (n.has(4)) {
    const auto past = n.dims(4);
    if (past.size() != 5) invalid("past is [2, batch, heads, positions, depth], not " + n.type(4).str());
    auto of = [&](std::int64_t which) {
      return b.with_dims(b.slice_axis(n.in(4), 0, which, 1), {past[1], past[2], past[3], past[4]});
    };
    p.key = b.add(concat{2}, {of(0), p.key});
    p.values = b.add(concat{2}, {of(1), p.values});
  }
  p.scale = scale_of(n, p.query.type().dims[3]);
  add_masks(n, p, 3, 5, n.integer("unidirectional", 0) != 0, n.real("mask_filter_value", -10000));
  std::vector<value> results{join_heads(b, heads_first(b, attend(b, p)))};
  if (n.wants(1)) {
    auto lifted = [&](value v) {
      auto dims = v.type().dims;
      dims.insert(dims.begin(), 1);
      return b.with_dims(v, dims);
    };
    results.push_back(b.add(concat{0}, {lifted(p.key), lifted(p.values)}));
  }
  return results;
}

// Returns entry i of axis 3 of a packed tensor [B, S, N, parts, H] as [B, N, S, H].
value unpacked(builder& b, value packed, std::int64_t i) {
  const auto d = packed.type().dims;
  return heads_first(b, b.with_dims(b.slice_axis(packed, 3, i, 1), {d[0], d[1], d[2], d[4]}));
}

// Returns query, key and value of MultiHeadAttention as [B, N, S, H] with the bias added, for any of the supported
// input forms.
attention_problem projections(node& n, std::int64_t heads) {
  builder& b = n.b;
  attention_problem p;
  std::int64_t start = 0;
  // Adds the next columns of the bias [Q + K + V] as [1, N, 1, H].
  auto biased = [&](value v) {
    if (!n.has(3)) return v;
    const dim depth = v.type().dims[3];
    if (!depth.is_static()) refuse("the depth of a head must be known");
    value part = b.slice_axis(n.in(3), 0, start, heads * depth.value());
    start += heads * depth.value();
    return b.binary(fn::add, v, b.with_dims(part, {1, heads, 1, depth}));
  };
  if (n.rank(0) == 5) {
    p.query = biased(unpacked(b, n.in(0), 0));
    p.key = biased(unpacked(b, n.in(0), 1));
    p.values = biased(unpacked(b, n.in(0), 2));
    return p;
  }
  p.query = biased(heads_first(b, split_heads(b, n.in(0), heads)));
  if (n.rank(1) == 5) {
    if (n.has(3)) refuse("a bias beside packed keys and values is not supported");
    p.key = unpacked(b, n.in(1), 0);
    p.values = unpacked(b, n.in(1), 1);
  } else if (n.rank(1) == 4) {
    // Precomputed keys and values of a cross attention, which already contain their bias.
    p.key = n.in(1);
    p.values = n.in(2);
  } else {
    p.key = biased(heads_first(b, split_heads(b, n.in(1), heads)));
    p.values = biased(heads_first(b, split_heads(b, n.in(2), heads)));
  }
  return p;
}

// inputs: query, key, value, bias, padding mask, attention bias, past key, past value, past length, cache indirection.
std::vector<value> multi_head_attention(node& n) {
  builder& b = n.b;
  if (n.has(8) || n.has(9)) refuse("a shared buffer of past keys (inputs 8 and 9) is not supported");
  n.refuse_outputs_from(3, "qk");
  attention_problem p = projections(n, number_of_heads(n));
  if (n.has(6) != n.has(7)) invalid("past_key and past_value come together");
  if (n.has(6)) p.key = b.add(concat{2}, {n.in(6), p.key}), p.values = b.add(concat{2}, {n.in(7), p.values});
  p.scale = scale_of(n, p.query.type().dims[3]);
  add_masks(n, p, 4, 5, n.integer("unidirectional", 0) != 0, n.real("mask_filter_value", -10000));
  std::vector<value> results{join_heads(b, heads_first(b, attend(b, p)))};
  if (n.outputs() > 1) results.push_back(p.key);
  if (n.outputs() > 2) results.push_back(p.values);
  return results;
}

// Positions of the queries of each batch entry among its keys.
struct places {
  value past;      // i64[B, 1]: number of keys before the first query
  value total;     // i64[B, 1]: number of valid keys
  value of_query;  // i64[B, S]
};

places places_of(node& n, const dim& batch, const dim& queries) {
  builder& b = n.b;
  if (!(n.type(5).elements() == batch)) invalid("seqlens_k is " + n.type(5).str() + " for a batch of " + batch.str());
  places at;
  at.total = b.binary(fn::add, b.with_dims(b.to_type(n.in(5), element_type::i64), {batch, 1}), 1.0);
  at.past = b.binary(fn::max, b.binary(fn::sub, at.total, b.dims_tensor({queries}, 0)), 0.0);
  at.of_query = b.binary(fn::add, b.iota_like(element_type::i64, {1, queries}, 1), at.past);
  return at;
}

// Returns the valid part of the past of each batch entry, then the new rows, then zeros. past [B, G, P, H], fresh [B,
// G, S, H].
value appended(builder& b, value past, value fresh, const places& at) {
  const auto p = past.type().dims;
  value both = b.add(concat{2}, {past, fresh});
  const auto dims = both.type().dims;
  const dim batch = dims[0], keys = dims[2];
  value key = b.iota_like(element_type::i64, {1, keys}, 1);
  value gap = b.binary(fn::sub, b.dims_tensor({p[2]}, 0), at.past);  // rows of the past that are not valid
  value index = b.binary(fn::add, key, b.where(b.binary(fn::less, key, at.past), b.scalar(element_type::i64, 0), gap));
  index = b.binary(fn::min, index, b.dims_tensor({keys - dim(1)}, 0));
  value rows = b.add(gather_elements{2}, {both, b.broadcast_to(b.with_dims(index, {batch, 1, keys, 1}), dims)});
  value written = b.binary(fn::less, key, b.binary(fn::add, at.past, b.dims_tensor({fresh.type().dims[2]}, 0)));
  return b.where(b.with_dims(written, {batch, 1, keys, 1}), rows, b.scalar(rows.type().type, 0));
}

value group_rotated(node& n, value x, const places& at) {
  builder& b = n.b;
  value positions;
  if (n.has(9)) {
    positions = n.in(9);
  } else {
    value counts = b.binary(fn::less, at.of_query, at.total);
    positions = b.where(counts, at.of_query, b.scalar(element_type::i64, 1));
  }
  return rotated(b, x, rows_at(b, n.in(7), positions), rows_at(b, n.in(8), positions),
                 n.integer("rotary_interleaved", 0) != 0);
}

// inputs: query [B, S, N*H] (or query, key and value concatenated), key, value, past key, past value, last key of each
// batch entry, total number of keys, cosines, sines, positions, attention bias, sink. outputs: [B, S, N*H], present
// key, present value.
std::vector<value> group_query_attention(node& n) {
  builder& b = n.b;
  n.refuse_outputs_from(3, "qk");
  for (std::size_t i = 12; i < n.inputs(); ++i)
    if (n.has(i)) refuse("input " + std::to_string(i) + " (a quantized cache) is not supported");
  std::int64_t heads = number_of_heads(n), key_heads = number_of_heads(n, "kv_num_heads");
  value query, key, values;
  if (n.has(1)) {
    query = split_heads(b, n.in(0), heads);
    key = split_heads(b, n.in(1), key_heads);
    values = split_heads(b, n.in(2), key_heads);
  } else {
    value all = split_heads(b, n.in(0), heads + 2 * key_heads);
    query = b.slice_axis(all, 2, 0, heads);
    key = b.slice_axis(all, 2, heads, key_heads);
    values = b.slice_axis(all, 2, heads + key_heads, key_heads);
  }
  const dim batch = query.type().dims[0], queries = query.type().dims[1];
  places at = places_of(n, batch, queries);
  if (n.integer("do_rotary", 0)) query = group_rotated(n, query, at), key = group_rotated(n, key, at);
  attention_problem p{heads_first(b, query), heads_first(b, key), heads_first(b, values)};
  if (n.has(3) != n.has(4)) invalid("past_key and past_value come together");
  if (n.has(3)) p.key = appended(b, n.in(3), p.key, at), p.values = appended(b, n.in(4), p.values, at);
  const dim keys = p.key.type().dims[2];
  p.scale = scale_of(n, p.query.type().dims[3]);
  p.soft_cap = n.real("softcap", 0);
  // Query i of a batch entry sees the keys up to its own position, or only the last `window` of them.
  value place = b.with_dims(at.of_query, {batch, 1, queries, 1}), order = b.iota_like(element_type::i64, {keys}, 0);
  value last = b.binary(fn::min, place, b.with_dims(b.binary(fn::sub, at.total, 1.0), {batch, 1, 1, 1}));
  value seen = b.binary(fn::less_equal, order, last);
  if (std::int64_t window = n.integer("local_window_size", -1); window >= 0)
    seen = b.binary(fn::logical_and, seen,
                    b.binary(fn::greater, order, b.binary(fn::sub, place, static_cast<double>(window))));
  p.mask = seen;
  if (n.has(10))
    p.mask = b.where(seen, b.to_type(n.in(10), element_type::f32),
                     b.scalar(element_type::f32, -std::numeric_limits<double>::infinity()));
  if (n.has(11)) p.sink = n.in(11);
  else if (n.integer("smooth_softmax", 0) > 0) p.sink = b.scalar(element_type::f32, 0);
  std::vector<value> results{join_heads(b, heads_first(b, attend(b, p)))};
  if (n.outputs() > 1) results.push_back(p.key);
  if (n.outputs() > 2) results.push_back(p.values);
  return results;
}

constexpr operator_row rows[] = {
    {"Attention", contrib_attention, 1, "no 4-dimensional masks, no shared buffers", microsoft_domain},
    {"MultiHeadAttention", multi_head_attention, 1, "no shared buffers", microsoft_domain},
    {"GroupQueryAttention", group_query_attention, 1,
     "the present has as many positions as past and input; no quantized cache", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
