// Reductions, running sums and products.
#include <algorithm>
#include <numeric>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/operators.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns no axes if the reduction is the identity (no axes given and noop_with_empty_axes). ReduceSum takes axes as an
// input since opset 13, the others since 18.
std::vector<std::int64_t> axes_of(node& n, std::int64_t input_since) {
  auto axes = n.numbers_since(input_since, "axes", 1).value_or(std::vector<std::int64_t>{});
  if (axes.empty()) {
    if (n.integer("noop_with_empty_axes", 0)) return {};
    axes.resize(n.rank(0));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (auto& a : axes) a = normalize_axis(a, n.rank(0));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

// How many elements a mask selects, i64[1], if `numbers` are its elements as integers and NonZero or Compress took the
// mask before: torch's exporter writes `x[mask] = y` with the places and the sum.
std::optional<value> selected_count(const node& n, value numbers) {
  const auto* converted = numbers.producer->op().get_if<convert>();
  if (!converted || is_float(converted->type)) return std::nullopt;
  const auto& counted = n.owner.state().non_zero;
  value mask = numbers.producer->inputs()[0];
  while (mask.type().type == element_type::boolean) {
    if (auto seen = counted.find(mask); seen != counted.end()) return seen->second[1];
    if (!mask.producer->op().is<reshape>()) break;
    mask = mask.producer->inputs()[0];
  }
  return std::nullopt;
}

template <reduction_kind Kind, std::int64_t Since = 18>
std::vector<value> reduced(node& n) {
  const auto axes = axes_of(n, Since);
  const bool keeps = n.integer("keepdims", 1) != 0;
  if constexpr (Kind == reduction_kind::sum)
    if (auto count = axes.size() == n.rank(0) && n.rank(0) > 0 ? selected_count(n, n.in(0)) : std::nullopt)
      return {n.b.to_type(n.b.with_dims(*count, std::vector<dim>(keeps ? n.rank(0) : 0, 1)), n.type(0).type)};
  value result = n.b.reduced(Kind, n.in(0), axes, keeps);
  if constexpr (Kind == reduction_kind::sum) know_summary(n, summary::sum, n.in(0), result);
  if constexpr (Kind == reduction_kind::max) know_summary(n, summary::max, n.in(0), result);
  if constexpr (Kind == reduction_kind::min) know_summary(n, summary::min, n.in(0), result);
  return {result};
}

value sum(node& n, value x) {
  return n.b.reduced(reduction_kind::sum, x, axes_of(n, 18), n.integer("keepdims", 1) != 0);
}

std::vector<value> l1(node& n) { return {sum(n, n.b.unary(fn::abs, n.in(0)))}; }
std::vector<value> sum_square(node& n) { return {sum(n, n.b.binary(fn::mul, n.in(0), n.in(0)))}; }
std::vector<value> log_sum(node& n) { return {n.b.unary(fn::log, sum(n, n.in(0)))}; }

// For narrow inputs, the steps from the sum to its root stay in f32.
std::vector<value> l2(node& n) {
  element_type type = n.type(0).type;
  value x = n.b.to_type(n.in(0), is_float(type) ? compute_type(type) : element_type::f64);
  return {n.b.to_type(n.b.unary(fn::sqrt, sum(n, n.b.binary(fn::mul, x, x))), type)};
}

// max + log(sum(exp(x - max))), which does not overflow. An infinite maximum is not subtracted.
std::vector<value> log_sum_exp(node& n) {
  builder& b = n.b;
  element_type type = n.type(0).type;
  value x = b.to_type(n.in(0), is_float(type) ? compute_type(type) : element_type::f64);
  auto axes = axes_of(n, 18);
  value top = b.reduced(reduction_kind::max, x, axes, true);
  value shift = b.where(b.unary(fn::is_inf, top), b.scalar(top.type().type, 0), top);
  value total = b.reduced(reduction_kind::sum, b.unary(fn::exp, b.binary(fn::sub, x, shift)), axes, true);
  value result = b.binary(fn::add, b.unary(fn::log, total), shift);
  if (!n.integer("keepdims", 1)) {
    std::vector<dim> dims;
    for (std::size_t i = 0; i < n.rank(0); ++i)
      if (std::ranges::find(axes, static_cast<std::int64_t>(i)) == axes.end()) dims.push_back(n.dims(0)[i]);
    result = b.with_dims(result, dims);
  }
  return {b.to_type(result, type)};
}

// Input 1 names the axis. If it is data, all axes are computed, and the one that it names is chosen.
template <class Along>
value along_given_axis(node& n, Along along) {
  builder& b = n.b;
  const std::size_t rank = n.rank(0);
  if (n.type(1).element_count() != 1) invalid("axis must have one element");
  constexpr std::size_t most_axes = 4;
  if (b.constant_of(n.in(1)) || b.known(n.in(1)) || rank > most_axes || rank == 0)
    return along(normalize_axis(n.numbers(1, "axis").at(0), rank));
  value given = b.to_type(b.with_dims(n.in(1), {}), element_type::i64);
  value axis = b.where(b.binary(fn::less, given, 0.0), b.binary(fn::add, given, static_cast<double>(rank)), given);
  value result = along(0);
  for (std::size_t i = 1; i < rank; ++i)
    result = b.where(b.binary(fn::equal, axis, static_cast<double>(i)), along(static_cast<std::int64_t>(i)), result);
  return result;
}

std::vector<value> cumulative(node& n) {
  bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
  return {along_given_axis(
      n, [&](std::int64_t axis) { return n.b.add(cumulative_sum{axis, exclusive, reverse}, {n.in(0)}); })};
}

// For short or open axes: masks the elements that do not belong to each product, [.., n, n, ..], and reduces once.
value products_of_few(builder& b, value x, std::int64_t axis, bool exclusive, bool reverse) {
  auto dims = x.type().dims;
  auto at = static_cast<std::size_t>(axis);
  std::vector<dim> square(dims.size() - at + 1, 1), apart = dims;
  square[0] = square[1] = dims.at(at);
  apart.insert(apart.begin() + axis, 1);
  value result = b.iota_like(element_type::i64, square, 0), factor = b.iota_like(element_type::i64, square, 1);
  auto order = reverse ? (exclusive ? fn::greater : fn::greater_equal) : (exclusive ? fn::less : fn::less_equal);
  value factors = b.where(b.binary(order, factor, result), b.with_dims(x, apart), b.scalar(x.type().type, 1));
  return b.reduced(reduction_kind::product, factors, {axis + 1}, false);
}

// Shifts x along the axis towards the end (reverse: towards the beginning) and fills with ones.
value shifted_ones(builder& b, value x, std::int64_t axis, std::int64_t by, bool reverse) {
  auto at = static_cast<std::size_t>(axis);
  std::size_t rank = x.type().rank();
  std::int64_t kept = x.type().dims.at(at).value() - by;
  pad op{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0), pad_mode::constant_, 1};
  (reverse ? op.after : op.before)[at] = by;
  return b.add(std::move(op), {b.slice_axis(x, axis, reverse ? by : 0, kept)});
}

// For long axes: log2(n) elementwise products with x shifted by 1, 2, 4, ... (Hillis and Steele's scan).
value product_along(builder& b, value x, std::int64_t axis, bool exclusive, bool reverse) {
  const dim length = x.type().dims.at(static_cast<std::size_t>(axis));
  constexpr std::int64_t few = 32;
  if (!length.is_static() || length.value() <= few) return products_of_few(b, x, axis, exclusive, reverse);
  if (exclusive) x = shifted_ones(b, x, axis, 1, reverse);
  for (std::int64_t by = 1; by < length.value(); by *= 2)
    x = b.binary(fn::mul, x, shifted_ones(b, x, axis, by, reverse));
  return x;
}

std::vector<value> cumulative_product(node& n) {
  bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
  element_type type = n.type(0).type;
  value x = n.b.to_type(n.in(0), is_float(type) ? compute_type(type) : type);
  value result =
      along_given_axis(n, [&](std::int64_t axis) { return product_along(n.b, x, axis, exclusive, reverse); });
  return {n.b.to_type(result, type)};
}

constexpr operator_row rows[] = {
    {"ReduceSum", reduced<reduction_kind::sum, 13>},
    {"ReduceMean", reduced<reduction_kind::mean>, 1},
    {"ReduceMax", reduced<reduction_kind::max>},
    {"ReduceMin", reduced<reduction_kind::min>},
    {"ReduceProd", reduced<reduction_kind::product>},
    {"ReduceL1", l1},
    {"ReduceL2", l2},
    {"ReduceSumSquare", sum_square},
    {"ReduceLogSum", log_sum, 1},
    {"ReduceLogSumExp", log_sum_exp},
    {"CumSum", cumulative, 11, "axis known at import for more than 4 axes"},
    {"CumProd", cumulative_product, 26, "axis known at import for more than 4 axes"},
};

}  // namespace

std::span<const operator_row> reduction_operators() { return rows; }

}  // namespace kiln::onnx_import
