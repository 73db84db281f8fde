// Operators that create tensors: constants, ranges, masks, windows.
#include <cmath>
#include <numbers>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/sizes_of_data.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<value> constant_node(node& n) {
  using proto = ::onnx::AttributeProto;
  text_lists& texts = n.owner.state().texts;
  if (n.has_attribute("value_string")) return {text_constant(n.b, texts, {n.text("value_string", "")}, {})};
  if (auto list = n.texts("value_strings"); n.has_attribute("value_strings"))
    return {text_constant(n.b, texts, list, {static_cast<std::int64_t>(list.size())})};
  if (n.has_attribute("value_float"))
    return {n.b.constant(literal::scalar(element_type::f32, n.real("value_float", 0)))};
  if (n.has_attribute("value_int"))
    return {n.b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {n.integer("value_int", 0)}))};
  if (auto list = n.integers("value_ints")) return {n.b.integers(*list)};
  for (auto& a : *n.proto.mutable_attribute()) {
    if (a.name() == "value" && a.type() == proto::TENSOR && a.t().data_type() == ::onnx::TensorProto::STRING)
      return {text_constant(n.b, texts, a.t(), "its value")};
    if (a.name() == "value" && a.type() == proto::TENSOR)
      return {n.b.constant(n.owner.tensor(*a.mutable_t(), "its value"))};
    if (a.name() == "sparse_value" && a.has_sparse_tensor())
      return {n.b.constant(n.owner.tensor(*a.mutable_sparse_tensor(), "its value"))};
    if (a.name() == "value_floats" && a.type() == proto::FLOATS)
      return {n.b.constant(literal::of<float>({element_type::f32, {a.floats_size()}},
                                              std::vector<float>(a.floats().begin(), a.floats().end())))};
  }
  invalid("has no value");
}

void check_dims(const known_elements& dims) {
  for (const dim& d : dims)
    if (d.is_static() && (d.value() < 0 || d.value() > largest_dim)) invalid("the shape has a dimension of " + d.str());
}

std::vector<value> constant_of_shape(node& n) {
  literal fill = literal::scalar(element_type::f32, 0);
  for (auto& a : *n.proto.mutable_attribute())
    if (a.name() == "value" && a.type() == ::onnx::AttributeProto::TENSOR)
      fill = n.owner.tensor(*a.mutable_t(), "its value");
  if (fill.type().element_count() != 1) invalid("its value must have one element, not " + fill.type().str());
  auto dims = n.known(0, "shape");
  check_dims(dims);
  return {n.b.broadcast_to(n.b.constant(fill.reshaped({})), dims)};
}

// The number of elements of a range of floats whose bounds the model computes from sizes, such as [0.5, 1.5, ...,
// width). The division by delta must not round: onnxruntime computes it in f64.
std::optional<dim> count_of_real_range(node& n) {
  builder& b = n.b;
  const auto delta = b.constant_of(n.in(2));
  if (n.type(0).type != element_type::f32 || b.constant_of(n.in(1)) || !delta || delta->type().element_count() != 1)
    return std::nullopt;
  int exponent = 0;
  if (std::frexp(delta->at(0), &exponent) != 0.5) return std::nullopt;
  value span = b.binary(fn::sub, b.with_dims(n.in(1), {}), b.with_dims(n.in(0), {}));
  value count = b.unary(fn::ceil, b.binary(fn::mul, span, std::ldexp(1, 1 - exponent)));
  const auto known = b.known(b.to_type(count, element_type::i64));
  if (!known) return std::nullopt;
  return b.facts().max(known->at(0), 0);
}

// The number of elements of a range whose bounds are floats that the model computes from data.
std::optional<dim> count_of_computed_range(node& n, value start, value delta) {
  builder& b = n.b;
  const bool constant = b.constant_of(n.in(0)) && b.constant_of(n.in(1)) && b.constant_of(n.in(2));
  if (constant || !is_float(n.type(0).type) || !n.owner.state().data_decides_sizes) return std::nullopt;
  value span = b.binary(fn::sub, b.with_dims(n.in(1), {}), start);
  value count = b.to_type(b.unary(fn::ceil, b.binary(fn::div, span, delta)), element_type::i64);
  return size_of_data(n, b.with_dims(b.binary(fn::max, count, 0.0), {1}));
}

// start + i * delta for i in [0, ceil((limit - start) / delta)).
std::vector<value> range(node& n) {
  builder& b = n.b;
  element_type type = n.type(0).type;
  value start = b.with_dims(n.in(0), {}), delta = b.with_dims(n.in(2), {});
  dim count;
  auto known = [&](int i) {
    const value v = n.in(static_cast<std::size_t>(i));
    auto elements = b.known(v);
    return elements ? elements : elements_of_data(n, v, n.proto.input(i));
  };
  auto from = known(0), to = known(1), by = known(2);
  if (from && to && by) {
    if (from->size() != 1 || to->size() != 1 || by->size() != 1) invalid("start, limit and delta must be scalars");
    dim span = (*to)[0] - (*from)[0], step = (*by)[0];
    if (step == dim(0)) invalid("delta is 0");
    if (!step.is_static() && !b.facts().at_least(step, 1))
      refuse("delta depends on dimension '" + step.str() + "'; give it a value with --dim");
    if (divides_exactly(span, step, count)) {
      // An exact quotient needs no rounding: it is simpler than the general form if the step is a symbol.
    } else if (!step.is_static() || step.value() > 0) {
      count = (span + step - dim(1)) / step;
    } else {
      count = (dim(0) - span - step - dim(1)) / (dim(0) - step);
    }
  } else {
    auto computed = count_of_real_range(n);
    if (!computed) computed = count_of_computed_range(n, start, delta);
    // The limit may follow from the elements of an input. Asking for it lets the import start again with them.
    if (!computed && !b.constant_of(n.in(1))) n.known(1, "limit");
    if (computed) {
      count = *computed;
    } else {
      double step = n.number(2, "delta"), elements = std::ceil((n.number(1, "limit") - n.number(0, "start")) / step);
      if (step == 0 || !(std::abs(elements) < 1e12)) invalid("the range has no end");
      count = static_cast<std::int64_t>(elements);
    }
  }
  if (count.is_static() && count.value() < 0) count = 0;
  // f16 and bf16 are computed in f32 (attribute stash_type, opset 27) and rounded once.
  element_type wide = is_float(type) ? compute_type(type) : type;
  if (wide != type && n.integer("stash_type", 1) != 1)
    refuse("stash_type " + std::to_string(n.integer("stash_type", 1)) + " is not supported, only 1 (float)");
  value index = b.to_type(b.iota_like(element_type::i64, {count}, 0), wide);
  return {b.to_type(b.binary(fn::add, b.binary(fn::mul, index, b.to_type(delta, wide)), b.to_type(start, wide)), type)};
}

std::vector<value> eye_like(node& n) {
  const auto dims = n.dims(0);
  if (dims.size() != 2) invalid("needs a matrix, not " + n.type(0).str());
  element_type type =
      n.has_attribute("dtype") ? element_type_of(n.integer("dtype", 1), "attribute 'dtype'") : n.type(0).type;
  value row = n.b.iota_like(element_type::i64, dims, 0), column = n.b.iota_like(element_type::i64, dims, 1);
  value diagonal = n.b.binary(fn::equal, n.b.binary(fn::sub, column, row), static_cast<double>(n.integer("k", 0)));
  return {n.b.to_type(diagonal, type)};
}

// Keeps column - row >= k (upper) or <= k (lower).
std::vector<value> trilu(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  const auto& dims = x.type().dims;
  if (dims.size() < 2) invalid("needs matrices, not " + x.type().str());
  std::vector<dim> matrix(dims.end() - 2, dims.end());
  value distance =
      b.binary(fn::sub, b.iota_like(element_type::i64, matrix, 1), b.iota_like(element_type::i64, matrix, 0));
  value k = n.has(1) ? b.with_dims(n.in(1), {}) : b.scalar(element_type::i64, 0);
  value kept = b.binary(n.integer("upper", 1) ? fn::greater_equal : fn::less_equal, distance, k);
  return {b.where(kept, x, b.scalar(x.type().type, 0))};
}

// values[0] everywhere except values[1] at the index. Indices outside [-depth, depth) match nothing.
std::vector<value> one_hot(node& n) {
  builder& b = n.b;
  auto known_depth = n.known(1, "depth");
  if (known_depth.size() != 1) invalid("depth must be a scalar");
  dim depth = known_depth[0];
  if (depth.is_static() && depth.value() < 0) invalid("depth is negative");
  value index = b.to_type(n.in(0), element_type::i64), values = n.in(2);
  auto dims = index.type().dims;
  auto axis = normalize_axis(n.integer("axis", -1), dims.size() + 1);
  value wrapped = b.where(b.binary(fn::less, index, 0.0), b.binary(fn::add, index, b.dims_tensor({depth}, 0)), index);
  auto apart = dims, full = dims;
  apart.insert(apart.begin() + axis, 1);
  full.insert(full.begin() + axis, depth);
  value hit = b.binary(fn::equal, b.with_dims(wrapped, apart), b.iota_like(element_type::i64, full, axis));
  value off = b.with_dims(b.slice_axis(values, 0, 0, 1), {}), on = b.with_dims(b.slice_axis(values, 0, 1, 1), {});
  return {b.where(hit, on, off)};
}

// a0 - a1 cos(2πi/N) + a2 cos(4πi/N), where N is the size, or size - 1 for a symmetric window.
value cosine_window(node& n, double a0, double a1, double a2) {
  builder& b = n.b;
  element_type type = element_type_of(n.integer("output_datatype", 1), "attribute 'output_datatype'");
  const auto sizes = n.known(0, "size");
  if (sizes.size() != 1) invalid("size must have one element");
  const dim size = sizes[0];
  const bool periodic = n.integer("periodic", 1) != 0;
  value index = b.iota_like(element_type::f32, {size}, 0), angle;
  if (size.is_static()) {
    if (size.value() < 0 || size.value() > 1 << 30) invalid("size is out of range");
    auto period = static_cast<double>(periodic ? size.value() : size.value() - 1);
    angle = b.binary(fn::mul, index, 2 * std::numbers::pi / std::max(1.0, period));
  } else {
    value period = b.to_type(b.data_of(periodic ? size : size - dim(1)), element_type::f32);
    value turns = b.binary(fn::div, index, b.binary(fn::max, period, 1.0));
    angle = b.binary(fn::mul, turns, 2 * std::numbers::pi);
  }
  value wave = b.binary(fn::mul, b.unary(fn::cos, angle), -a1);
  value second = b.binary(fn::mul, b.unary(fn::cos, b.binary(fn::mul, angle, 2.0)), a2);
  return b.to_type(b.binary(fn::add, b.binary(fn::add, wave, second), a0), type);
}

std::vector<value> hann(node& n) { return {cosine_window(n, 0.5, 0.5, 0)}; }
std::vector<value> hamming(node& n) { return {cosine_window(n, 25.0 / 46, 21.0 / 46, 0)}; }
std::vector<value> blackman(node& n) { return {cosine_window(n, 0.42, 0.5, 0.08)}; }

constexpr operator_row rows[] = {
    {"Constant", constant_node},
    {"ConstantOfShape", constant_of_shape, 9, "shape known at import"},
    {"Range", range, 11,
     "in bodies of If and Loop: bounds that are numbers, small integer inputs or computed from sizes"},
    {"EyeLike", eye_like, 9},
    {"Trilu", trilu, 14},
    {"OneHot", one_hot, 9, "depth known at import"},
    {"HannWindow", hann, 17},
    {"HammingWindow", hamming, 17},
    {"BlackmanWindow", blackman, 17},
};

}  // namespace

std::span<const operator_row> generator_operators() { return rows; }

}  // namespace kiln::onnx_import
