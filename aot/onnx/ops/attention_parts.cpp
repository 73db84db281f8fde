#include "aot/onnx/ops/attention_parts.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

bool is_plain(const attention_problem& p) { return p.soft_cap == 0 && !p.sink; }

value lowest(builder& b) { return b.scalar(element_type::f32, -std::numeric_limits<double>::infinity()); }

// True where key j is visible to query i.
value causal_mask(builder& b, const dim& queries, const dim& keys) {
  value key = b.iota_like(element_type::i64, {queries, keys}, 1),
        query = b.iota_like(element_type::i64, {queries, keys}, 0);
  return b.binary(fn::less_equal, b.binary(fn::sub, key, query), b.dims_tensor({keys - queries}, 0));
}

value masked(builder& b, value scores, value mask) {
  if (mask.type().type == element_type::boolean) return b.where(mask, scores, b.to_type(lowest(b), scores.type().type));
  return b.binary(fn::add, scores, b.to_type(mask, scores.type().type));
}

value weights_of(builder& b, const attention_problem& p, value scores) {
  if (!p.sink) return b.add(softmax{3, false}, {scores});
  const auto dims = scores.type().dims;
  value lifted = p.sink.type().rank() == 0 ? p.sink : b.with_dims(p.sink, {1, dims.at(1), 1, 1});
  value column = b.broadcast_to(b.to_type(lifted, scores.type().type), {dims.at(0), dims.at(1), dims.at(2), 1});
  value all = b.add(softmax{3, false}, {b.add(concat{3}, {column, scores})});
  return b.slice_axis(all, 3, 1, dims.at(3));
}

// The scores at each score_stage. A stage that the problem does not have is equal to the stage before it.
std::array<value, 4> stages_of(builder& b, const attention_problem& p) {
  value product = scores_of(b, p), capped = product;
  if (p.soft_cap != 0)
    capped = b.binary(fn::mul, b.unary(fn::tanh, b.binary(fn::div, product, p.soft_cap)), p.soft_cap);
  value seen = capped;
  if (p.mask) seen = masked(b, seen, p.mask);
  if (p.causal) seen = masked(b, seen, causal_mask(b, p.query.type().dims.at(2), p.key.type().dims.at(2)));
  return {product, capped, seen, weights_of(b, p, seen)};
}

value sums_of(builder& b, const attention_problem& p) {
  if (!is_plain(p)) return weighted_sums(b, p, stages_of(b, p).back());
  attention op{p.scale, p.causal};
  return b.add(
      op, p.mask ? std::vector<value>{p.query, p.key, p.values, p.mask} : std::vector<value>{p.query, p.key, p.values});
}

// Zeroes the rows of queries for which the mask hides all keys.
value without_unseen(builder& b, value sums, value mask) {
  value seen = mask.type().type == element_type::boolean
                   ? mask
                   : b.binary(fn::greater, mask, -std::numeric_limits<double>::infinity());
  value some = b.reduced(reduction_kind::max, seen, {static_cast<std::int64_t>(mask.type().rank()) - 1}, true);
  return b.where(some, sums, b.scalar(sums.type().type, 0));
}

bool zeroes_unseen(const attention_problem& p) { return p.zero_unseen && p.mask && p.mask.type().rank() > 0; }

}  // namespace

value split_heads(builder& b, value x, std::int64_t heads) {
  const auto dims = x.type().dims;
  if (dims.size() != 3) invalid("needs [batch, sequence, heads * depth], not " + x.type().str());
  if (heads >= 1 && !dims.at(2).is_static())
    refuse("the size of the last axis of " + x.type().str() + " must be known; give it a value with --dim");
  if (heads < 1 || dims.at(2).value() % heads)
    invalid(std::to_string(heads) + " heads do not divide the last axis of " + x.type().str());
  return b.with_dims(x, {dims.at(0), dims.at(1), heads, dims.at(2).value() / heads});
}

query_key_values packed_heads(node& n, std::int64_t heads, std::int64_t key_heads) {
  builder& b = n.b;
  if (n.has(1))
    return {split_heads(b, n.in(0), heads), split_heads(b, n.in(1), key_heads), split_heads(b, n.in(2), key_heads)};
  value all = split_heads(b, n.in(0), heads + 2 * key_heads);
  return {b.slice_axis(all, 2, 0, heads), b.slice_axis(all, 2, heads, key_heads),
          b.slice_axis(all, 2, heads + key_heads, key_heads)};
}

value heads_first(builder& b, value x) { return b.permuted(x, {0, 2, 1, 3}); }

value join_heads(builder& b, value x) {
  const auto dims = x.type().dims;
  return b.with_dims(x, {dims.at(0), dims.at(1), dims.at(2) * dims.at(3)});
}

value scores_of(builder& b, const attention_problem& p) {
  const auto q = p.query.type().dims, k = p.key.type().dims;
  element_type wide = compute_type(p.query.type().type);
  dim rows = q[1] * q[2] / k[1];
  value product = b.add(dot{false, true, wide}, {b.with_dims(p.query, {q[0], k[1], rows, q[3]}), p.key});
  return b.binary(fn::mul, b.with_dims(product, {q[0], q[1], q[2], k[2]}), p.scale);
}

void check_ranks(const attention_problem& p) {
  if (p.query.type().rank() != 4 || p.key.type().rank() != 4 || p.values.type().rank() != 4)
    invalid("query, key and value need rank 4 once their heads are apart");
}

value weighted_sums(builder& b, const attention_problem& p, value weights) {
  const auto q = p.query.type().dims, k = p.key.type().dims;
  element_type type = p.query.type().type;
  dim rows = q[1] * q[2] / k[1];
  value sums =
      b.add(dot{false, false, type}, {b.with_dims(b.to_type(weights, type), {q[0], k[1], rows, k[2]}), p.values});
  return b.with_dims(sums, {q[0], q[1], q[2], p.values.type().dims.at(3)});
}

value attend(builder& b, const attention_problem& p) {
  check_ranks(p);
  value sums = sums_of(b, p);
  return zeroes_unseen(p) ? without_unseen(b, sums, p.mask) : sums;
}

attention_with_scores attend_with_scores(builder& b, const attention_problem& p, score_stage stage) {
  check_ranks(p);
  auto stages = stages_of(b, p);
  if (zeroes_unseen(p)) stages.back() = without_unseen(b, stages.back(), p.mask);
  return {weighted_sums(b, p, stages.back()), b.to_type(stages[static_cast<std::size_t>(stage)], p.query.type().type)};
}

value rotated(builder& b, value x, value cos, value sin, bool interleaved) {
  const auto dims = x.type().dims;
  if (!dims.at(3).is_static() || !cos.type().dims.back().is_static())
    refuse("the depth of a head and of the cosines must be known");
  std::int64_t depth = dims.at(3).value(), half = cos.type().dims.back().value();
  if (cos.type().dims != sin.type().dims)
    invalid("the cosines " + cos.type().str() + " and the sines " + sin.type().str() + " differ");
  if (2 * half > depth) invalid(std::to_string(half) + " cosines for heads of depth " + std::to_string(depth));
  auto along_heads = [&](value v) {
    auto lifted = v.type().dims;
    lifted.insert(lifted.begin() + 2, 1);
    return b.to_type(b.with_dims(v, lifted), compute_type(x.type().type));
  };
  value wide = b.to_type(x, compute_type(x.type().type)), c = along_heads(cos), s = along_heads(sin);
  value turned = b.slice_axis(wide, 3, 0, 2 * half), first, second;
  std::vector<dim> pairs{dims.at(0), dims.at(1), dims.at(2), half, 2}, part{dims.at(0), dims.at(1), dims.at(2), half};
  if (interleaved) {
    value paired = b.with_dims(turned, pairs);
    first = b.with_dims(b.slice_axis(paired, 4, 0, 1), part);
    second = b.with_dims(b.slice_axis(paired, 4, 1, 1), part);
  } else {
    first = b.slice_axis(turned, 3, 0, half);
    second = b.slice_axis(turned, 3, half, half);
  }
  value real = b.binary(fn::sub, b.binary(fn::mul, first, c), b.binary(fn::mul, second, s));
  value imaginary = b.binary(fn::add, b.binary(fn::mul, first, s), b.binary(fn::mul, second, c));
  value joined;
  if (interleaved) {
    std::vector<dim> apart{dims.at(0), dims.at(1), dims.at(2), half, 1};
    joined = b.with_dims(b.add(concat{4}, {b.with_dims(real, apart), b.with_dims(imaginary, apart)}),
                         {dims.at(0), dims.at(1), dims.at(2), 2 * half});
  } else {
    joined = b.add(concat{3}, {real, imaginary});
  }
  if (2 * half < depth) joined = b.add(concat{3}, {joined, b.slice_axis(wide, 3, 2 * half, depth - 2 * half)});
  return b.to_type(joined, x.type().type);
}

value normalized_heads(builder& b, value x, value weights, double epsilon) {
  element_type wide = compute_type(x.type().type);
  value normal = b.add(normalize{{3}, epsilon, false}, {b.to_type(x, wide)});
  return b.to_type(b.binary(fn::mul, normal, b.to_type(weights, wide)), x.type().type);
}

value rows_at(builder& b, value cache, value positions) {
  if (cache.type().rank() != 2) invalid("a cache of cosines is [positions, half], not " + cache.type().str());
  return b.add(gather{0}, {cache, positions});
}

}  // namespace kiln::onnx_import
