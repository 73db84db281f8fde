// onnxruntime's Attention, MultiHeadAttention and their quantized and decoding forms.
#include "aot/onnx/ops/contrib_attention.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Inputs of attention over the concatenated projections [B, S, Q + K + V]; `sizes` holds the widths Q, K and V. `mask`,
// `past`, `bias` and `length` are the indices of these inputs in the node.
struct attention_inputs {
  std::size_t mask, past, bias, length;
};

std::vector<value> attend_to_product(node& n, value product, const std::vector<std::int64_t>& sizes,
                                     const attention_inputs& at) {
  builder& b = n.b;
  if (n.integer("do_rotary", 0)) refuse("do_rotary=1 is not supported; export RotaryEmbedding as a node of its own");
  std::int64_t heads = number_of_heads(n), start = 0;
  auto part = [&](std::size_t i) {
    value v = heads_first(b, split_heads(b, b.slice_axis(product, 2, start, sizes[i]), heads));
    start += sizes[i];
    return v;
  };
  attention_problem p{part(0), part(1), part(2)};
  bool shared = n.integer("past_present_share_buffer", 0) != 0, causal = n.integer("unidirectional", 0) != 0;
  if (shared && (!n.has(at.past) || !n.has(at.length)))
    invalid("past_present_share_buffer=1 needs past and past_sequence_length");
  value length = shared ? b.with_dims(b.to_type(n.in(at.length), element_type::i64), {}) : value{};
  if (n.has(at.past)) {
    const auto past = n.dims(at.past);
    if (past.size() != 5) invalid("past is [2, batch, heads, positions, depth], not " + n.type(at.past).str());
    auto with_past = [&](std::int64_t which, value fresh) {
      value before = b.with_dims(b.slice_axis(n.in(at.past), 0, which, 1), {past[1], past[2], past[3], past[4]});
      return shared ? written_into(b, before, fresh, length) : b.add(concat{2}, {before, fresh});
    };
    p.key = with_past(0, p.key);
    p.values = with_past(1, p.values);
  }
  p.scale = attention_scale(n, p.query.type().dims.at(3));
  add_masks(n, p, at.mask, at.bias, causal && !shared, n.real("mask_filter_value", -10000));
  if (shared) see_only_written(b, p, length, causal);
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

std::int64_t projected_columns(node& n) {
  if (n.rank(0) != 3 || n.rank(1) != 2 || !n.dims(1)[1].is_static())
    invalid("needs an input of rank 3 and weights of rank 2, not " + n.type(0).str() + " and " + n.type(1).str());
  return n.dims(1)[1].value();
}

// Input index that no node reaches; it marks an input that the operator does not have.
constexpr std::size_t none = 99;

// inputs: X [B, S, D], weights [D, Q+K+V], bias, mask, past [2, B, N, P, H], attention bias, past length. outputs: [B,
// S, V], present.
std::vector<value> contrib_attention(node& n) {
  auto columns = projected_columns(n);
  std::vector<std::int64_t> sizes =
      n.integers("qkv_hidden_sizes").value_or(std::vector<std::int64_t>{columns / 3, columns / 3, columns / 3});
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] ||
      sizes[0] + sizes[1] + sizes[2] != columns)
    invalid("qkv_hidden_sizes do not fit the weights " + n.type(1).str());
  value product = matmul(n.b, n.in(0), n.in(1), n.type(0).type);
  if (n.has(2)) product = n.b.binary(fn::add, product, n.in(2));
  return attend_to_product(n, product, sizes, {3, 4, 5, 6});
}

// inputs: X, weights (8 bits), bias, scales of X and the weights, mask, their zero points, past.
std::vector<value> quantized_attention(node& n) {
  auto columns = projected_columns(n);
  auto zero = [&](std::size_t i) { return n.has(i) ? n.in(i) : value{}; };
  value product = scaled_product(n.b, n.in(0), n.in(3), zero(6), n.in(1), n.in(4), zero(7), n.in(2));
  return attend_to_product(n, product, {columns / 3, columns / 3, columns / 3}, {5, 8, none, none});
}

// Returns entry i of axis 3 of a packed tensor [B, S, N, parts, H] as [B, N, S, H].
value unpacked(builder& b, value packed, std::int64_t i) {
  const auto d = packed.type().dims;
  return heads_first(b, b.with_dims(b.slice_axis(packed, 3, i, 1), {d[0], d[1], d[2], d[4]}));
}

// Returns query, key and value of MultiHeadAttention as [B, N, S, H] with the bias added, for any of the supported
// input forms.
attention_problem projections(node& n, std::int64_t heads, std::size_t bias = 3) {
  builder& b = n.b;
  attention_problem p;
  std::int64_t start = 0;
  // Adds the next columns of the bias [Q + K + V] as [1, N, 1, H].
  auto biased = [&](value v) {
    if (!n.has(bias)) return v;
    const dim depth = v.type().dims.at(3);
    if (!depth.is_static()) refuse("the depth of a head must be known");
    value part = b.slice_axis(n.in(bias), 0, start, heads * depth.value());
    start += heads * depth.value();
    return b.binary(fn::add, v, b.with_dims(part, {1, heads, 1, depth}));
  };
  if (n.rank(0) == 5) {
    p.query = biased(unpacked(b, n.in(0), 0));
    p.key = biased(unpacked(b, n.in(0), 1));
    p.values = biased(unpacked(b, n.in(0), 2));
    return p;
  }
  if (!n.has(1)) {
    value all = split_heads(b, n.in(0), 3 * heads);
    auto part = [&](std::int64_t i) { return biased(heads_first(b, b.slice_axis(all, 2, i * heads, heads))); };
    p.query = part(0);
    p.key = part(1);
    p.values = part(2);
    return p;
  }
  p.query = biased(heads_first(b, split_heads(b, n.in(0), heads)));
  if (n.rank(1) == 5) {
    if (n.has(bias)) refuse("a bias beside packed keys and values is not supported");
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

// Indices of the optional inputs of MultiHeadAttention and DecoderMaskedMultiHeadAttention.
struct optional_inputs {
  std::size_t mask, bias, past_key, past_value, length, indirection;
};

// Appends the new keys and values to the past, adds the masks and computes attention. Outputs: [B, S, V], present key,
// present value, scores.
std::vector<value> attend_to_past(node& n, attention_problem p, const optional_inputs& at) {
  builder& b = n.b;
  if (n.has(at.indirection))
    refuse("cache_indirection belongs to a beam search inside the model; export the decoder without it");
  if (n.has(at.past_key) != n.has(at.past_value)) invalid("past_key and past_value come together");
  bool shared = n.has(at.length) && n.has(at.past_key), causal = n.integer("unidirectional", 0) != 0;
  value length = shared ? b.with_dims(b.to_type(n.in(at.length), element_type::i64), {}) : value{};
  if (n.has(at.past_key)) {
    auto with_past = [&](std::size_t i, value fresh) {
      return shared ? written_into(b, n.in(i), fresh, length) : b.add(concat{2}, {n.in(i), fresh});
    };
    p.key = with_past(at.past_key, p.key);
    p.values = with_past(at.past_value, p.values);
  }
  p.scale = attention_scale(n, p.query.type().dims.at(3));
  add_masks(n, p, at.mask, at.bias, causal && !shared, n.real("mask_filter_value", -10000));
  if (shared) see_only_written(b, p, length, causal);
  value sums, scores;
  if (n.wants(3)) {
    auto both = attend_with_scores(b, p, score_stage::masked);
    sums = both.sums, scores = both.scores;
  } else {
    sums = attend(b, p);
  }
  std::vector<value> results{join_heads(b, heads_first(b, sums))};
  if (n.outputs() > 1) results.push_back(p.key);
  if (n.outputs() > 2) results.push_back(p.values);
  if (n.outputs() > 3) results.push_back(scores);
  return results;
}

// inputs: query, key, value, bias, padding mask, attention bias, past key, past value, past length, cache indirection.
std::vector<value> multi_head_attention(node& n) {
  return attend_to_past(n, projections(n, number_of_heads(n)), {4, 5, 6, 7, 8, 9});
}

// MultiHeadAttention for a single query. inputs: query, key, value, padding mask, attention bias, past key, past value,
// past length, beam width, cache indirection, bias. Past and present share one buffer only if the attribute
// past_present_share_buffer is set.
std::vector<value> decoder_attention(node& n) {
  bool shared = n.integer("past_present_share_buffer", 0) != 0;
  return attend_to_past(n, projections(n, number_of_heads(n), 10), {3, 4, 5, 6, shared ? 7 : none, 9});
}

constexpr operator_row rows[] = {
    {"Attention", contrib_attention, 1, "no do_rotary", microsoft_domain},
    {"QAttention", quantized_attention, 1, "no do_rotary", microsoft_domain},
    {"MultiHeadAttention", multi_head_attention, 1, "no cache indirection", microsoft_domain},
    {"DecoderMaskedMultiHeadAttention", decoder_attention, 1, "no cache indirection", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
