// Biases of attention scores from onnxruntime's domain: T5's bucketed relative positions, WavLM's gated ones, and
// softmax with a bias.
#include <cmath>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns the bucket of each distance (key - query) as i64. Each small distance has a bucket of its own; bucket widths
// of large distances grow logarithmically (Raffel et al., T5).
value bucket_of(node& n, value distance, std::int64_t buckets) {
  builder& b = n.b;
  bool both_ways = n.integer("is_bidirectional", 0) != 0;
  std::int64_t most = n.integer("max_distance", 0);
  value base = b.scalar(element_type::i64, 0);
  if (both_ways) {
    buckets /= 2;
    base =
        b.where(b.binary(fn::greater, distance, 0.0), b.scalar(element_type::i64, static_cast<double>(buckets)), base);
    distance = b.unary(fn::abs, distance);
  } else {
    distance = b.binary(fn::max, b.unary(fn::neg, distance), 0.0);
  }
  std::int64_t exact = buckets / 2;
  if (exact < 1 || most <= exact)
    invalid("max_distance " + std::to_string(most) + " does not fit " + std::to_string(buckets) + " buckets");
  value ratio =
      b.binary(fn::div, b.to_type(b.binary(fn::max, distance, 1.0), element_type::f32), static_cast<double>(exact));
  double factor =
      static_cast<double>(buckets - exact) / std::log(static_cast<double>(most) / static_cast<double>(exact));
  value far = b.to_type(b.binary(fn::mul, b.unary(fn::log, ratio), factor), element_type::i64);
  far = b.binary(fn::min, b.binary(fn::add, far, static_cast<double>(exact)), static_cast<double>(buckets - 1));
  return b.binary(fn::add, base, b.where(b.binary(fn::less, distance, static_cast<double>(exact)), distance, far));
}

// inputs: table (declared as [buckets, heads], but its data is laid out as [heads, buckets]), number of queries, number
// of keys.
std::vector<value> relative_position_bias(node& n) {
  builder& b = n.b;
  auto queries = n.known(1, "query_length"), keys = n.known(2, "key_length");
  if (queries.size() != 1 || keys.size() != 1 || n.rank(0) != 2) invalid("needs a table of rank 2 and two lengths");
  const dim buckets = n.dims(0)[0], heads = n.dims(0)[1];
  if (!buckets.is_static()) refuse("the number of buckets must be known");
  std::vector<dim> square{queries[0], keys[0]};
  value distance =
      b.binary(fn::sub, b.iota_like(element_type::i64, square, 1), b.iota_like(element_type::i64, square, 0));
  value table = b.with_dims(n.in(0), {heads, buckets});
  value bias = b.add(gather{1}, {table, bucket_of(n, distance, buckets.value())});
  return {b.with_dims(bias, {1, heads, queries[0], keys[0]})};
}

// inputs: query [B, S, N*H], its bias, positions [1, N, S, S], weights [H, D], bias [D], eco_a [1, N, 1, 1], token
// offsets.
std::vector<value> gated_relative_position_bias(node& n) {
  builder& b = n.b;
  if (n.has(6)) refuse("token_offset (removed padding) is not supported; export the model without it");
  std::int64_t heads = n.integer("num_heads", 0);
  const auto dims = n.dims(0), weights = n.dims(3);
  if (dims.size() != 3 || heads < 1 || !dims.at(2).is_static() || dims.at(2).value() % heads || weights.size() != 2 ||
      !weights[1].is_static() || weights[1].value() % 2)
    invalid("the query " + n.type(0).str() + " and the weights " + n.type(3).str() + " do not fit");
  element_type type = n.type(0).type;
  value query =
      b.with_dims(b.binary(fn::add, n.in(0), n.in(1)), {dims.at(0), dims.at(1), heads, dims.at(2).value() / heads});
  value gates = b.binary(fn::add, matmul(b, b.permuted(query, {0, 2, 1, 3}), n.in(3), type), n.in(4));
  gates = b.with_dims(gates, {dims.at(0), heads, dims.at(1), 2, weights[1].value() / 2});
  gates = b.unary(fn::sigmoid, b.reduced(reduction_kind::sum, gates, {4}, false));
  value update = b.slice_axis(gates, 3, 0, 1), reset = b.slice_axis(gates, 3, 1, 1);
  value factor = b.binary(fn::sub, b.binary(fn::mul, reset, n.in(5)), 1.0);
  factor = b.binary(fn::add, b.binary(fn::mul, update, factor), 2.0);
  return {b.binary(fn::mul, factor, n.in(2))};
}

// softmax(scores + bias) over all axes from `axis` on, treated as one axis.
std::vector<value> bias_softmax(node& n) {
  builder& b = n.b;
  value sum = b.binary(fn::add, n.in(0), n.in(1));
  const auto dims = sum.type().dims;
  if (dims != n.dims(0)) invalid("the bias " + n.type(1).str() + " is larger than the scores " + n.type(0).str());
  auto axis = static_cast<std::size_t>(n.axis("axis", 1, dims.size()));
  dim rows = 1, columns = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) (i < axis ? rows : columns) = (i < axis ? rows : columns) * dims.at(i);
  return {b.with_dims(b.add(softmax{1, false}, {b.with_dims(sum, {rows, columns})}), dims)};
}

constexpr operator_row rows[] = {
    {"RelativePositionBias", relative_position_bias, 1, "lengths known at import", microsoft_domain},
    {"GatedRelativePositionBias", gated_relative_position_bias, 1, "no token_offset", microsoft_domain},
    {"BiasSoftmax", bias_softmax, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_position_operators() { return rows; }

}  // namespace kiln::onnx_import
