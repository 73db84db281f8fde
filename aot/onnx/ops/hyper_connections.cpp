#include "aot/onnx/ops/hyper_connections.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns the streams as [..., C, H]. Flattened ones [..., C * H] come with the attribute num_branches.
value grouped(node& n, value streams) {
  const std::int64_t branches = n.integer("num_branches", 0);
  if (branches == 0) return streams;
  std::vector<dim> dims = streams.type().dims;
  if (branches < 1 || dims.empty() || !dims.back().is_static() || dims.back().value() % branches != 0)
    invalid("the streams " + streams.type().str() + " do not divide into " + std::to_string(branches) + " branches");
  const std::int64_t width = dims.back().value() / branches;
  dims.back() = branches;
  dims.push_back(width);
  return n.b.with_dims(streams, dims);
}

// Returns gates [..., C], [..., C, 1], [..., C, H] or [..., C * H] in a shape that broadcasts to the streams.
value spread_gates(node& n, value gates, const shape& streams) {
  std::vector<dim> dims = gates.type().dims;
  if (dims.size() == streams.rank()) return gates;
  if (dims.size() + 1 != streams.rank())
    invalid("the gates " + gates.type().str() + " do not fit the streams " + streams.str());
  const dim branches = streams.dims[streams.rank() - 2];
  const bool one_each = dims.back() == branches;
  dims.back() = branches;
  dims.push_back(one_each ? dim(1) : streams.dims.back());
  return n.b.with_dims(gates, dims);
}

std::int64_t last(value v, std::int64_t back = 1) { return static_cast<std::int64_t>(v.type().rank()) - back; }

// Adds an axis of 1 before the last one.
value with_branch_axis(builder& b, value v) {
  std::vector<dim> dims = v.type().dims;
  dims.insert(dims.end() - 1, 1);
  return b.with_dims(v, dims);
}

value root_mean_square_norm(builder& b, value x, value scale, double epsilon) {
  return b.binary(fn::mul, b.add(normalize{{last(x)}, epsilon, false}, {x}), scale);
}

// Computes in f32 and rounds to the type of the streams after each step, as the operators that it stands for would.
struct stepwise {
  builder& b;
  element_type type;
  value wide(value v) const { return b.to_type(v, compute_type(type)); }
  value rounded(value v) const { return wide(b.to_type(v, type)); }
};

// Returns 1 where the last axis has one of the k largest of x, and 0 elsewhere, i64.
value marks_of_largest(builder& b, value x, std::int64_t k) {
  const auto size = x.type().dims.back();
  if (!size.is_static() || k < 1 || k > size.value())
    invalid(std::to_string(k) + " of " + size.str() + " cannot be selected");
  value places = b.to_type(builder::output(b.add(top_k{k, last(x), true}, {x}), 1), element_type::i64);
  value none = b.broadcast_to(b.scalar(element_type::i64, 0), x.type().dims);
  value ones = b.broadcast_to(b.scalar(element_type::i64, 1), places.type().dims);
  return b.add(scatter_elements{last(x)}, {none, places, ones});
}

// The previous and the present token ids, [batch, history + length].
value ids_with_history(node& n, value ids, std::int64_t history) {
  builder& b = n.b;
  value before = n.has(3) ? n.in(3) : value{};
  if (!before) {
    value absent =
        n.has(5) ? b.with_dims(n.in(5), {}) : b.scalar(ids.type().type, static_cast<double>(n.integer("pad_id", 0)));
    before = b.broadcast_to(absent, {ids.type().dims.at(0), history});
  }
  return b.add(concat{1}, {before, ids});
}

}  // namespace

// inputs: streams, gates. The gated streams are summed over the branches.
std::vector<value> hyper_connection_pre_mix(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type;
  value streams = b.to_type(grouped(n, n.in(0)), compute_type(type));
  value gates = b.to_type(spread_gates(n, n.in(1), streams.type()), streams.type().type);
  value sum = b.reduced(reduction_kind::sum, b.binary(fn::mul, streams, gates), {last(streams, 2)}, false);
  return {b.to_type(b.binary(fn::mul, sum, n.real("reduction_scale", 1)), type)};
}

// inputs: streams, output of a block [..., H], gates of its injection, matrix [..., C, C] that mixes the streams.
std::vector<value> hyper_connection_post_mix(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  value streams = b.to_type(grouped(n, n.in(0)), wide);
  value gates = b.to_type(spread_gates(n, n.in(2), streams.type()), wide);
  value injected = b.binary(fn::mul, gates, with_branch_axis(b, b.to_type(n.in(1), wide)));
  if (n.has(3)) {
    value mix = b.to_type(n.in(3), wide);
    std::vector<std::int64_t> order(mix.type().rank());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::swap(order.back(), order[order.size() - 2]);
    streams = matmul(b, b.permuted(mix, order), streams, wide);
  }
  return {b.with_dims(b.to_type(b.binary(fn::add, streams, injected), type), n.dims(0))};
}

// inputs: flattened streams, scale of the norm, weights down, up and of the injection; optionally the output and the
// gate of the previous block, which are added to the streams first.
std::vector<value> hyper_connection_low_rank_mix(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type;
  const stepwise step{b, type};
  value streams = step.wide(grouped(n, n.in(0)));
  const std::vector<dim> dims = streams.type().dims, flat = n.dims(0);
  if (n.has(5) != n.has(6)) invalid("prev_block_output and prev_post_gate come together");
  if (n.has(5)) {
    value gate = spread_gates(n, step.wide(n.in(6)), streams.type());
    streams =
        step.rounded(b.binary(fn::add, streams, b.binary(fn::mul, gate, with_branch_axis(b, step.wide(n.in(5))))));
  }
  value scale = b.with_dims(step.wide(n.in(1)), {dims[dims.size() - 2], dims.back()});
  value norm = step.rounded(root_mean_square_norm(b, streams, scale, n.real("epsilon", 1e-5)));
  value row = b.with_dims(norm, flat);
  auto product = [&](value x, std::size_t weights) {
    return step.rounded(matmul(b, x, step.wide(n.in(weights)), x.type().type));
  };
  value z = step.rounded(b.binary(fn::mul, product(row, 2), n.real("silu_alpha", 1)));
  value hidden = step.rounded(b.binary(fn::mul, z, step.rounded(b.unary(fn::sigmoid, z))));
  value gates = b.with_dims(step.rounded(b.unary(fn::sigmoid, product(hidden, 3))), dims);
  value sum = b.reduced(reduction_kind::sum, b.binary(fn::mul, norm, gates), {last(norm, 2)}, false);
  value inject = step.rounded(b.binary(fn::div, product(row, 4), n.real("gate_div", 1)));
  value post = b.binary(fn::mul, step.rounded(b.unary(fn::sigmoid, inject)), n.real("gate_mul", 1));
  return {b.to_type(b.binary(fn::mul, sum, n.real("reduction_scale", 1)), type), b.to_type(post, type),
          b.to_type(b.with_dims(streams, flat), type)};
}

// inputs: keys and queries [batch, length, C, H], values [batch, length, H], scales [C, H] of the norms of keys,
// queries and gated values.
std::vector<value> engram_gate(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  const dim width = n.dims(0).back();
  if (!width.is_static()) refuse("the width of a key must be known");
  const double epsilon = n.real("epsilon", 1e-5);
  auto normed = [&](value x, std::size_t scale) {
    return root_mean_square_norm(b, b.to_type(x, wide), b.to_type(n.in(scale), wide), epsilon);
  };
  value dot =
      b.reduced(reduction_kind::sum, b.binary(fn::mul, normed(n.in(0), 3), normed(n.in(1), 4)), {last(n.in(0))}, true);
  dot = b.binary(fn::div, dot, std::sqrt(static_cast<double>(width.value())));
  value root = b.unary(fn::sqrt, b.binary(fn::max, b.unary(fn::abs, dot), 1e-6));
  value gate = b.unary(fn::sigmoid, b.binary(fn::mul, b.unary(fn::sign, dot), root));
  value gated = b.binary(fn::mul, gate, with_branch_axis(b, b.to_type(n.in(2), wide)));
  std::vector<value> results{b.to_type(gated, type)};
  if (n.wants(1)) results.push_back(b.to_type(normed(results[0], 5), type));
  return results;
}

// inputs: ids [batch, length], multipliers, sizes of the vocabularies, ids before these, offsets of the heads, id of
// the end. For each n-gram of 2 and more tokens: the exclusive or of its products, modulo the size of each head.
std::vector<value> ngram_hash_mapping(node& n) {
  builder& b = n.b;
  if (n.has(6)) refuse("segment_ids are not supported");
  if (n.integer("reset_on_eos", 0)) refuse("reset_on_eos=1 is not supported");
  const std::int64_t most = n.integer("max_ngram_size", 2), heads = n.integer("n_head_per_ngram", 1);
  if (most < 2 || most > 1 << 10 || heads < 1 || heads > 1 << 16 || n.rank(0) != 2)
    invalid("max_ngram_size or n_head_per_ngram");
  value all = ids_with_history(n, n.in(0), most - 1);
  const dim batch = n.dims(0)[0], length = n.dims(0)[1];
  value mix;
  std::vector<value> hashes;
  for (std::int64_t shift = 0; shift < most; ++shift) {
    value shifted = b.slice_from(all, 1, dim(most - 1 - shift), length, 1);
    value factor = b.with_dims(b.slice_axis(n.in(1), 0, shift, 1), {});
    value term = b.binary(fn::mul, shifted, factor);
    mix = mix ? b.binary(fn::bit_xor, mix, term) : term;
    if (shift == 0) continue;
    value sizes = b.slice_axis(n.in(2), 0, (shift - 1) * heads, heads);
    hashes.push_back(b.binary(fn::mod, b.with_dims(mix, {batch, length, 1}), sizes));
  }
  value ids = b.add(concat{2}, hashes);
  if (n.has(4)) ids = b.binary(fn::add, ids, n.in(4));
  return {ids, b.slice_from(all, 1, length, dim(most - 1), 1)};
}

// inputs: logits [..., experts] or rows to project, bias of the experts, weights of the projection [experts, width].
std::vector<value> moe_group_router(node& n) {
  builder& b = n.b;
  value logits = b.to_type(n.in(0), element_type::f32);
  const std::vector<dim> given = logits.type().dims;
  if (given.empty()) invalid("the logits are a scalar");
  dim tokens = 1;
  for (std::size_t i = 0; i + 1 < given.size(); ++i) tokens = tokens * given[i];
  logits = b.with_dims(logits, {tokens, given.back()});
  if (n.has(2)) logits = b.add(dot{false, true, element_type::f32}, {logits, b.to_type(n.in(2), element_type::f32)});
  const dim experts = logits.type().dims[1];
  value chances = b.unary(fn::sigmoid, logits), biased = b.binary(fn::add, chances, n.in(1));
  if (n.wants(1) || n.wants(2)) return {{}, biased, chances};
  const std::int64_t groups = n.integer("n_group", 1), kept = n.integer("topk_group", 1);
  if (!experts.is_static() || groups < 1 || experts.value() % groups != 0)
    invalid("the experts of " + n.type(0).str() + " do not divide into " + std::to_string(groups) + " groups");
  const std::int64_t each = experts.value() / groups;
  value by_group = b.with_dims(biased, {tokens, groups, each});
  const std::int64_t summed = std::min(n.integer("group_topk", 2), each);
  value best = b.add(top_k{summed, 2, true}, {by_group});
  value marks = marks_of_largest(b, b.reduced(reduction_kind::sum, best, {2}, false), kept);
  value allowed = b.binary(fn::greater, b.with_dims(marks, {tokens, groups, 1}), 0.0);
  value never = b.scalar(element_type::f32, -std::numeric_limits<double>::infinity());
  value candidates = b.with_dims(b.where(allowed, by_group, never), {tokens, experts});
  value chosen = b.binary(fn::greater, marks_of_largest(b, candidates, n.integer("top_k", 1)), 0.0);
  value scores = b.unary(fn::log, b.binary(fn::max, chances, 1e-20));
  value result = b.where(chosen, scores, b.scalar(element_type::f32, n.real("router_sentinel", -10000)));
  return {b.to_type(result, n.type(0).type)};
}

}  // namespace kiln::onnx_import
