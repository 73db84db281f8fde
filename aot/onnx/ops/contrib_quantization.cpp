// Quantized operators from onnxruntime's domain, as arithmetic on ordinary tensors: dequantize, compute in f32,
// quantize.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {

using fn = scalar_function;

namespace {

// Prepares a scale or zero point for broadcasting against a tensor of `rank`: one element, or one per index of `axis`.
value spread(builder& b, value parameter, std::optional<std::int64_t> axis, std::size_t rank) {
  if (parameter.type().elements() == dim(1)) return b.with_dims(parameter, {});
  if (!axis || parameter.type().rank() != 1)
    invalid("a scale or zero point " + parameter.type().str() + " is not supported");
  return b.along_axis(parameter, *axis, rank);
}

}  // namespace

value scaled_product(builder& b, value a, value a_scale, value a_zero, value weights, value b_scale, value b_zero,
                     value bias) {
  auto centred = [&](value x, value zero) {
    value wide = b.to_type(x, element_type::i32);
    std::size_t rank = x.type().rank();
    return zero ? b.binary(fn::sub, wide,
                           b.to_type(spread(b, zero, static_cast<std::int64_t>(rank) - 1, rank), element_type::i32))
                : wide;
  };
  value sum = b.to_type(matmul(b, centred(a, a_zero), centred(weights, b_zero), element_type::i32), element_type::f32);
  std::size_t rank = sum.type().rank();
  value scale = b.binary(fn::mul, spread(b, a_scale, std::nullopt, rank),
                         spread(b, b_scale, static_cast<std::int64_t>(rank) - 1, rank));
  value result = b.binary(fn::mul, sum, scale);
  return bias ? b.binary(fn::add, result, bias) : result;
}

value dequantized(builder& b, value q, value scale, value zero_point, std::optional<std::int64_t> axis) {
  std::size_t rank = q.type().rank();
  value real = b.to_type(q, element_type::f32);
  if (zero_point) real = b.binary(fn::sub, real, b.to_type(spread(b, zero_point, axis, rank), element_type::f32));
  return b.binary(fn::mul, real, b.to_type(spread(b, scale, axis, rank), element_type::f32));
}

value requantized(builder& b, value x, value scale, value zero_point) {
  value divisor = b.to_type(spread(b, scale, std::nullopt, 0), element_type::f32);
  return quantized(b, b.binary(fn::div, x, divisor), spread(b, zero_point, std::nullopt, 0));
}

namespace {

value optional_input(node& n, std::size_t i) { return n.has(i) ? n.in(i) : value{}; }

// Dequantizes input i; its scale and zero point are the next two inputs.
value dequantized(node& n, std::size_t i) {
  return onnx_import::dequantized(n.b, n.in(i), n.in(i + 1), optional_input(n, i + 2));
}

// Quantizes to the type of the zero point at input scale + 1, or to the type of the first input if there is none.
value requantized(node& n, value x, std::size_t scale) {
  value zero = n.has(scale + 1) ? n.in(scale + 1) : n.b.scalar(n.type(0).type, 0);
  return onnx_import::requantized(n.b, x, n.in(scale), zero);
}

template <fn Function>
std::vector<value> binary(node& n) {
  return {requantized(n, n.b.binary(Function, dequantized(n, 0), dequantized(n, 3)), 6)};
}

std::vector<value> sigmoid(node& n) { return {requantized(n, n.b.unary(fn::sigmoid, dequantized(n, 0)), 3)}; }
std::vector<value> leaky_relu(node& n) {
  return {requantized(n, n.b.binary(fn::prelu, dequantized(n, 0), n.real("alpha", 0.01)), 3)};
}

std::vector<value> soft_max(node& n) {
  value x = dequantized(n, 0);
  if (n.integer("opset", 0) < 13) {
    auto axis = n.axis("axis", 1, x.type().rank());
    if (axis + 1 != static_cast<std::int64_t>(x.type().rank()))
      refuse("axis " + std::to_string(axis) + " of an opset before 13 is not supported, only the last one");
  }
  return {requantized(n, n.b.add(softmax{n.axis("axis", -1, x.type().rank()), false}, {x}), 3)};
}

std::vector<value> global_average_pool(node& n) {
  if (n.rank(0) < 3) invalid("an image needs spatial axes, the input is " + n.type(0).str());
  bool last = n.integer("channels_last", 0) != 0;
  std::vector<std::int64_t> axes;
  for (std::size_t i = last ? 1 : 2; i < n.rank(0) - (last ? 1 : 0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return {requantized(n, n.b.reduced(reduction_kind::mean, dequantized(n, 0), axes, true), 3)};
}

// inputs: X, its scale and zero point, the result's scale and zero point.
std::vector<value> reduce_mean(node& n) {
  std::vector<std::int64_t> axes = n.integers("axes").value_or(std::vector<std::int64_t>{});
  if (axes.empty())
    for (std::size_t i = 0; i < n.rank(0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  for (auto& a : axes) a = normalize_axis(a, n.rank(0));
  std::ranges::sort(axes);
  return {requantized(n, n.b.reduced(reduction_kind::mean, dequantized(n, 0), axes, n.integer("keepdims", 1) != 0), 3)};
}

// inputs: the result's scale and zero point, then a tensor, its scale and its zero point, repeated.
std::vector<value> concatenated(node& n) {
  std::vector<value> parts;
  for (std::size_t i = 2; i + 1 < n.inputs(); i += 3) parts.push_back(dequantized(n, i));
  if (parts.empty()) invalid("has no inputs to concatenate");
  value joined = n.b.add(concat{n.axis("axis", 0, parts[0].type().rank())}, parts);
  return {onnx_import::requantized(n.b, joined, n.in(0), n.in(1))};
}

// inputs: condition, X, its scale and zero point, Y, its scale and zero point, the result's scale and zero point.
std::vector<value> where(node& n) {
  return {requantized(n, n.b.where(n.in(0), dequantized(n, 1), dequantized(n, 4)), 7)};
}

// inputs: A, its scale and zero point, B, its scale and zero point (possibly per column), C (i32), the result's scale
// and zero point. Without the last two the result is f32.
std::vector<value> gemm(node& n) {
  builder& b = n.b;
  bool transpose_a = n.integer("transA", 0) != 0, transpose_b = n.integer("transB", 0) != 0;
  if (n.rank(0) != 2 || n.rank(3) != 2)
    invalid("A and B must be matrices, not " + n.type(0).str() + " and " + n.type(3).str());
  auto centred = [&](std::size_t i, std::int64_t axis) {
    value x = b.to_type(n.in(i), element_type::i32);
    return n.has(i + 2) ? b.binary(fn::sub, x, b.to_type(spread(b, n.in(i + 2), axis, 2), element_type::i32)) : x;
  };
  value sum = b.add(dot{transpose_a, transpose_b, element_type::i32}, {centred(0, 0), centred(3, transpose_b ? 0 : 1)});
  if (n.has(6)) sum = b.binary(fn::add, sum, n.in(6));
  value scale = b.binary(fn::mul, spread(b, n.in(1), std::nullopt, 2), spread(b, n.in(4), 1, 2));
  double alpha = n.real("alpha", 1);
  value real =
      b.binary(fn::mul, b.to_type(sum, element_type::f32), alpha == 1 ? scale : b.binary(fn::mul, scale, alpha));
  return {n.has(7) ? requantized(n, real, 7) : real};
}

// inputs: A, B, A's scale, B's scale, A's zero point, B's zero point, bias.
std::vector<value> matmul_integer_to_float(node& n) {
  return {scaled_product(n.b, n.in(0), n.in(2), optional_input(n, 4), n.in(1), n.in(3), optional_input(n, 5),
                         optional_input(n, 6))};
}

// A u8 tensor with one scale and zero point, which are computed from the smallest and largest element of x.
struct dynamic_tensor {
  value elements, scale, zero;
};
dynamic_tensor quantized_dynamically(builder& b, value x) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.type().rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  value low = b.binary(fn::min, b.reduced(reduction_kind::min, x, axes, false), 0.0),
        high = b.binary(fn::max, b.reduced(reduction_kind::max, x, axes, false), 0.0);
  value span = b.binary(fn::sub, high, low);
  value scale = b.where(b.binary(fn::equal, span, 0.0), b.scalar(element_type::f32, 1), b.binary(fn::div, span, 255.0));
  value zero = quantized(b, b.binary(fn::div, b.unary(fn::neg, low), scale), b.scalar(element_type::u8, 0));
  return {quantized(b, b.binary(fn::div, x, scale), zero), scale, zero};
}

// inputs: A (f32), B, B's scale, B's zero point, bias.
std::vector<value> dynamic_quantize_matmul(node& n) {
  dynamic_tensor a = quantized_dynamically(n.b, n.in(0));
  return {
      scaled_product(n.b, a.elements, a.scale, a.zero, n.in(1), n.in(2), optional_input(n, 3), optional_input(n, 4))};
}

std::optional<std::int64_t> axis_of_scales(node& n) {
  if (n.type(1).elements() == dim(1)) return std::nullopt;
  return n.axis("axis", 1, n.rank(0));
}

// QuantizeLinear and DequantizeLinear for types that the standard did not have at first: 16 and 4 bits.
std::vector<value> quantize_linear(node& n) {
  builder& b = n.b;
  std::size_t rank = n.rank(0);
  auto axis = axis_of_scales(n);
  value scaled = b.binary(fn::div, b.to_type(n.in(0), element_type::f32),
                          b.to_type(spread(b, n.in(1), axis, rank), element_type::f32));
  return {quantized(b, scaled, n.has(2) ? spread(b, n.in(2), axis, rank) : b.scalar(element_type::u8, 0))};
}

std::vector<value> dequantize_linear(node& n) {
  return {n.b.to_type(onnx_import::dequantized(n.b, n.in(0), n.in(1), optional_input(n, 2), axis_of_scales(n)),
                      n.type(1).type)};
}

constexpr operator_row rows[] = {
    {"QLinearAdd", binary<fn::add>, 1, "", microsoft_domain},
    {"QLinearMul", binary<fn::mul>, 1, "", microsoft_domain},
    {"QLinearSigmoid", sigmoid, 1, "", microsoft_domain},
    {"QLinearLeakyRelu", leaky_relu, 1, "", microsoft_domain},
    {"QLinearSoftmax", soft_max, 1, "before opset 13 the last axis", microsoft_domain},
    {"QLinearConcat", concatenated, 1, "", microsoft_domain},
    {"QLinearGlobalAveragePool", global_average_pool, 1, "", microsoft_domain},
    {"QLinearReduceMean", reduce_mean, 1, "", microsoft_domain},
    {"QLinearWhere", where, 1, "", microsoft_domain},
    {"QGemm", gemm, 1, "", microsoft_domain},
    {"MatMulIntegerToFloat", matmul_integer_to_float, 1, "", microsoft_domain},
    {"DynamicQuantizeMatMul", dynamic_quantize_matmul, 1, "", microsoft_domain},
    {"QuantizeLinear", quantize_linear, 1, "", microsoft_domain},
    {"DequantizeLinear", dequantize_linear, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_quantization_operators() { return rows; }

}  // namespace kiln::onnx_import
