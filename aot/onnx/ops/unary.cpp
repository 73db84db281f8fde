// Operators that map each element of one tensor: functions, activations, casts.
#include <cmath>
#include <limits>
#include <numbers>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

template <fn Function>
std::vector<value> function(node& n) {
  return {n.b.unary(Function, n.in(0))};
}

std::vector<value> identity(node& n) { return {n.in(0)}; }

// Returns the power of two that `round_mode` selects for x. A conversion to f8e8m0 rounds to the nearest one.
value power_of_two(node& n, value x) {
  builder& b = n.b;
  std::string mode = n.text("round_mode", "up");
  if (mode == "nearest") return x;
  if (mode != "up" && mode != "down") invalid("round_mode is '" + mode + "', not up, down or nearest");
  value nearest = b.to_type(b.to_type(x, element_type::f8e8m0), element_type::f32);
  if (mode == "up") return b.where(b.binary(fn::less, nearest, x), b.binary(fn::mul, nearest, 2.0), nearest);
  return b.where(b.binary(fn::greater, nearest, x), b.binary(fn::mul, nearest, 0.5), nearest);
}

std::vector<value> cast_to(node& n, element_type type) {
  value x = n.in(0);
  if (x.type().type == type || !is_float(type) || storage_bits(type) != 8) return {n.b.to_type(x, type)};
  const bool saturate = n.integer("saturate", 1) != 0;
  if (type == element_type::f8e8m0) {
    x = n.b.to_type(x, element_type::f32);
    if (saturate) x = n.b.binary(fn::min, x, largest_finite(type));
    x = power_of_two(n, x);
  }
  return {saturate ? saturated_f8(n.b, x, type) : n.b.to_type(x, type)};
}

std::vector<value> cast(node& n) { return cast_to(n, element_type_of(n.integer("to", 0), "attribute 'to'")); }
std::vector<value> cast_like(node& n) { return cast_to(n, n.type(1).type); }

std::vector<value> bit_cast_to(node& n) {
  const element_type type = element_type_of(n.integer("to", 0), "attribute 'to'");
  if (n.type(0).type == type) return {n.in(0)};
  return {n.b.add(bit_cast{type}, {n.in(0)})};
}

// Computes formulas of several steps in a wider type, so that a float16 or bfloat16 result is rounded only once, at the
// end.
struct widened {
  explicit widened(node& n) : b(n.b), type(n.type(0).type), x(n.b.to_type(n.in(0), compute_type(n.type(0).type))) {}
  std::vector<value> back(value v) const { return {b.to_type(v, type)}; }
  builder& b;
  element_type type;
  value x;
};

value negative_part(builder& b, value x) { return b.binary(fn::min, x, 0.0); }

std::vector<value> elu(node& n) {  // x where positive, alpha * (exp(x) - 1) elsewhere
  widened w(n);
  value curve =
      w.b.binary(fn::mul, w.b.binary(fn::sub, w.b.unary(fn::exp, negative_part(w.b, w.x)), 1.0), n.real("alpha", 1.0));
  return w.back(w.b.binary(fn::add, w.b.unary(fn::relu, w.x), curve));
}

std::vector<value> selu(node& n) {
  widened w(n);
  double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
  value curve = w.b.binary(fn::mul, w.b.binary(fn::sub, w.b.unary(fn::exp, negative_part(w.b, w.x)), 1.0), alpha);
  return w.back(w.b.binary(fn::mul, w.b.binary(fn::add, w.b.unary(fn::relu, w.x), curve), gamma));
}

std::vector<value> celu(node& n) {
  widened w(n);
  double alpha = n.real("alpha", 1.0);
  value curve = w.b.binary(fn::sub, w.b.unary(fn::exp, w.b.binary(fn::div, negative_part(w.b, w.x), alpha)), 1.0);
  return w.back(w.b.binary(fn::add, w.b.unary(fn::relu, w.x), w.b.binary(fn::mul, curve, alpha)));
}

std::vector<value> leaky_relu(node& n) { return {n.b.binary(fn::prelu, n.in(0), n.real("alpha", 0.01))}; }

std::vector<value> thresholded_relu(node& n) {
  value zero = n.b.scalar(n.type(0).type, 0);
  return {n.b.where(n.b.binary(fn::greater, n.in(0), n.real("alpha", 1.0)), n.in(0), zero)};
}

value softplus(builder& b, value x) {  // max(x, 0) + log(1 + exp(-|x|)): no overflow
  value tail = b.unary(fn::log, b.binary(fn::add, b.unary(fn::exp, b.unary(fn::neg, b.unary(fn::abs, x))), 1.0));
  return b.binary(fn::add, b.unary(fn::relu, x), tail);
}

std::vector<value> softplus(node& n) {
  widened w(n);
  return w.back(softplus(w.b, w.x));
}

std::vector<value> softsign(node& n) {
  widened w(n);
  return w.back(w.b.binary(fn::div, w.x, w.b.binary(fn::add, w.b.unary(fn::abs, w.x), 1.0)));
}

std::vector<value> mish(node& n) {
  widened w(n);
  return w.back(w.b.binary(fn::mul, w.x, w.b.unary(fn::tanh, softplus(w.b, w.x))));
}

value clamp01(builder& b, value x) {
  value low = b.scalar(x.type().type, 0), high = b.scalar(x.type().type, 1);
  return b.add(elementwise{fn::clamp}, b.broadcast_together({x, low, high}));
}

std::vector<value> hard_sigmoid(node& n) {
  widened w(n);
  return w.back(clamp01(w.b, w.b.binary(fn::add, w.b.binary(fn::mul, w.x, n.real("alpha", 0.2)), n.real("beta", 0.5))));
}

std::vector<value> hard_swish(node& n) {
  widened w(n);
  return w.back(w.b.binary(fn::mul, w.x, clamp01(w.b, w.b.binary(fn::add, w.b.binary(fn::mul, w.x, 1.0 / 6), 0.5))));
}

std::vector<value> gelu(node& n) {
  widened w(n);
  std::string approximate = one_of(n, "approximate", "none", {"none", "tanh"});
  value inner;
  if (approximate == "none") {
    inner = w.b.unary(fn::erf, w.b.binary(fn::mul, w.x, 1 / std::numbers::sqrt2));
  } else {
    value cube = w.b.binary(fn::mul, w.b.binary(fn::mul, w.x, w.x), w.x);
    value sum = w.b.binary(fn::add, w.x, w.b.binary(fn::mul, cube, 0.044715));
    inner = w.b.unary(fn::tanh, w.b.binary(fn::mul, sum, std::sqrt(2 / std::numbers::pi)));
  }
  value half = w.b.binary(fn::mul, w.x, 0.5);
  return w.back(w.b.binary(fn::mul, half, w.b.binary(fn::add, inner, 1.0)));
}

// Integers are computed as f64, because bias and lambd are real; the result is truncated.
std::vector<value> shrink(node& n) {
  value x = is_float(n.type(0).type) ? n.in(0) : n.b.to_type(n.in(0), element_type::f64);
  double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0.0);
  value zero = n.b.scalar(x.type().type, 0);
  value high = n.b.where(n.b.binary(fn::greater, x, lambda), n.b.binary(fn::sub, x, bias), zero);
  value result = n.b.where(n.b.binary(fn::less, x, -lambda), n.b.binary(fn::add, x, bias), high);
  return {n.b.to_type(result, n.type(0).type)};
}

std::vector<value> clip(node& n) {
  value x = n.in(0), low, high;
  element_type type = x.type().type;
  if (n.opset < 11) {
    if (n.has_attribute("min")) low = n.b.scalar(type, n.real("min", 0));
    if (n.has_attribute("max")) high = n.b.scalar(type, n.real("max", 0));
  } else {
    if (n.has(1)) low = n.b.with_dims(n.in(1), {});
    if (n.has(2)) high = n.b.with_dims(n.in(2), {});
  }
  if (low && high)
    return {n.b.add(elementwise{fn::clamp},
                    {x, n.b.broadcast_to(low, x.type().dims), n.b.broadcast_to(high, x.type().dims)})};
  if (low) return {n.b.binary(fn::max, x, low)};
  if (high) return {n.b.binary(fn::min, x, high)};
  return {x};
}

std::vector<value> is_inf(node& n) {
  value x = n.in(0), inf = n.b.unary(fn::is_inf, x);
  bool positive = n.integer("detect_positive", 1), negative = n.integer("detect_negative", 1);
  if (positive && negative) return {inf};
  if (!positive && !negative) return {n.b.broadcast_to(n.b.scalar(element_type::boolean, 0), x.type().dims)};
  return {n.b.binary(fn::logical_and, inf, n.b.binary(positive ? fn::greater : fn::less, x, 0.0))};
}

constexpr operator_row rows[] = {
    {"Abs", function<fn::abs>, 6},
    {"Acos", function<fn::acos>, 7},
    {"Acosh", function<fn::acosh>, 9},
    {"Asin", function<fn::asin>, 7},
    {"Asinh", function<fn::asinh>, 9},
    {"Atan", function<fn::atan>, 7},
    {"Atanh", function<fn::atanh>, 9},
    {"Ceil", function<fn::ceil>, 6},
    {"Cos", function<fn::cos>, 7},
    {"Cosh", function<fn::cosh>, 9},
    {"Erf", function<fn::erf>, 9},
    {"Exp", function<fn::exp>, 6},
    {"Floor", function<fn::floor>, 6},
    {"Log", function<fn::log>, 6},
    {"Neg", function<fn::neg>, 6},
    {"Not", function<fn::logical_not>, 1},
    {"Reciprocal", function<fn::reciprocal>, 6},
    {"Relu", function<fn::relu>, 6},
    {"Round", function<fn::round>, 11},
    {"Sigmoid", function<fn::sigmoid>, 6},
    {"Sign", function<fn::sign>, 9},
    {"Sin", function<fn::sin>, 7},
    {"Sinh", function<fn::sinh>, 9},
    {"Sqrt", function<fn::sqrt>, 6},
    {"Tan", function<fn::tan>, 7},
    {"Tanh", function<fn::tanh>, 6},
    {"IsNaN", function<fn::is_nan>, 9},
    {"BitwiseNot", function<fn::bit_not>, 18},
    {"IsInf", is_inf, 10},
    {"Identity", identity, 1, "", "", true},
    {"Cast", cast, 6, "no strings"},
    {"BitCast", bit_cast_to, 26},
    {"CastLike", cast_like, 15, "no strings"},
    {"Elu", elu, 6},
    {"Selu", selu, 6},
    {"Celu", celu, 12},
    {"LeakyRelu", leaky_relu, 6},
    {"ThresholdedRelu", thresholded_relu, 10},
    {"Softplus", softplus, 1},
    {"Softsign", softsign, 1},
    {"Mish", mish, 18},
    {"HardSigmoid", hard_sigmoid, 6},
    {"HardSwish", hard_swish, 14},
    {"Gelu", gelu, 20},
    {"Shrink", shrink, 9},
    {"Clip", clip, 6},
};

}  // namespace

std::span<const operator_row> unary_operators() { return rows; }

}  // namespace kiln::onnx_import
