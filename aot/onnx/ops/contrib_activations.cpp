// Activations from onnxruntime's domain.
#include <cmath>
#include <numbers>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {

using fn = scalar_function;

value exact_gelu(builder& b, value x) {
  value inner = b.unary(fn::erf, b.binary(fn::mul, x, 1 / std::numbers::sqrt2));
  return b.binary(fn::mul, b.binary(fn::mul, x, 0.5), b.binary(fn::add, inner, 1.0));
}

value tanh_gelu(builder& b, value x) {
  value cube = b.binary(fn::mul, b.binary(fn::mul, x, x), x);
  value inner = b.unary(fn::tanh, b.binary(fn::mul, b.binary(fn::add, x, b.binary(fn::mul, cube, 0.044715)),
                                           std::sqrt(2 / std::numbers::pi)));
  return b.binary(fn::mul, b.binary(fn::mul, x, 0.5), b.binary(fn::add, inner, 1.0));
}

namespace {

// Parameter i of a fused activation. FusedConv has a list; FusedGemm and similar operators have separate attributes.
double parameter(const node& n, std::size_t i, double otherwise) {
  constexpr std::string_view names[] = {"activation_alpha", "activation_beta"};
  const auto* list = n.attribute("activation_params");
  if (list && static_cast<int>(i) < list->floats_size()) return static_cast<double>(list->floats(static_cast<int>(i)));
  return n.real(names[i], otherwise);
}

value clamped(builder& b, value x, double low, double high) {
  return b.add(elementwise{fn::clamp},
               b.broadcast_together({x, b.scalar(x.type().type, low), b.scalar(x.type().type, high)}));
}

struct activation_row {
  std::string_view name;
  value (*apply)(node& n, value x);
};

constexpr activation_row activations[] = {
    {"", [](node&, value x) { return x; }},
    {"Relu", [](node& n, value x) { return n.b.unary(fn::relu, x); }},
    {"Tanh", [](node& n, value x) { return n.b.unary(fn::tanh, x); }},
    {"Sigmoid", [](node& n, value x) { return n.b.unary(fn::sigmoid, x); }},
    {"LeakyRelu", [](node& n, value x) { return n.b.binary(fn::prelu, x, parameter(n, 0, 0.01)); }},
    {"Clip",
     [](node& n, value x) {
       return clamped(n.b, x, parameter(n, 0, -3.4028234663852886e38), parameter(n, 1, 3.4028234663852886e38));
     }},
    {"HardSigmoid",
     [](node& n, value x) {
       return clamped(n.b, n.b.binary(fn::add, n.b.binary(fn::mul, x, parameter(n, 0, 0.2)), parameter(n, 1, 0.5)), 0,
                      1);
     }},
};

// Returns x plus an optional bias, in the compute type.
value biased(node& n) {
  value x = n.b.to_type(n.in(0), compute_type(n.type(0).type));
  return n.has(1) ? n.b.binary(fn::add, x, n.b.to_type(n.in(1), x.type().type)) : x;
}

std::vector<value> gelu(node& n) { return {n.b.to_type(exact_gelu(n.b, biased(n)), n.type(0).type)}; }
std::vector<value> fast_gelu(node& n) { return {n.b.to_type(tanh_gelu(n.b, biased(n)), n.type(0).type)}; }

value swish(node& n, value x, double alpha) {
  return n.b.binary(fn::mul, x, n.b.unary(fn::sigmoid, alpha == 1 ? x : n.b.binary(fn::mul, x, alpha)));
}

std::vector<value> quick_gelu(node& n) {
  return {n.b.to_type(swish(n, biased(n), n.real("alpha", 1.702)), n.type(0).type)};
}

std::vector<value> standard_swish(node& n) {
  element_type type = n.type(0).type;
  return {n.b.to_type(swish(n, n.b.to_type(n.in(0), compute_type(type)), n.real("alpha", 1)), type)};
}

std::vector<value> swiglu(node& n) {
  element_type type = n.type(0).type, wide = compute_type(type);
  const std::string differ = "the gate " + n.type(0).str() + " and the value " + n.type(1).str() + " differ";
  if (type != n.type(1).type || n.rank(0) != n.rank(1)) invalid(differ);
  for (std::size_t i = 0; i < n.rank(0); ++i) n.b.need_equal(n.dims(0)[i], n.dims(1)[i], differ);
  return {n.b.to_type(
      n.b.binary(fn::mul, swish(n, n.b.to_type(n.in(0), wide), n.real("alpha", 1)), n.b.to_type(n.in(1), wide)), type)};
}

// onnxruntime's form of SwiGLU: both halves are clamped to `limit` if it is positive, and a number is added to the
// second. Without `up`, the last axis of `gate` holds both halves.
std::vector<value> clamped_swiglu(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  value gate = b.to_type(n.in(0), wide), up;
  if (n.has(1)) {
    up = b.to_type(n.in(1), wide);
  } else {
    const auto last = static_cast<std::int64_t>(n.rank(0)) - 1;
    if (last < 0 || !n.dims(0).back().is_static() || n.dims(0).back().value() % 2)
      invalid("the last axis of " + n.type(0).str() + " does not have an even size");
    const std::int64_t half = n.dims(0).back().value() / 2;
    up = b.slice_axis(gate, last, half, half), gate = b.slice_axis(gate, last, 0, half);
  }
  if (gate.type().dims != up.type().dims)
    invalid("the gate " + n.type(0).str() + " and the value " + n.type(1).str() + " differ");
  if (const double limit = n.real("limit", 0); limit > 0)
    gate = b.binary(fn::min, gate, limit), up = clamped(b, up, -limit, limit);
  value active = swish(n, gate, n.real("activation_alpha", 1));
  if (n.integer("round_activation", 0)) active = b.to_type(b.to_type(active, type), wide);
  if (const double added = n.real("activation_beta", 0); added != 0) up = b.binary(fn::add, up, added);
  return {b.to_type(b.binary(fn::mul, active, up), type)};
}

// SiLU of a scaled x. The scaled x and its sigmoid are rounded to the type.
std::vector<value> scaled_silu(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  auto rounded = [&](value v) { return b.to_type(b.to_type(v, type), wide); };
  value scale = n.has(1) ? b.with_dims(b.to_type(n.in(1), wide), {}) : b.scalar(wide, n.real("alpha", 1));
  value x = rounded(b.binary(fn::mul, b.to_type(n.in(0), wide), scale));
  return {b.to_type(b.binary(fn::mul, x, rounded(b.unary(fn::sigmoid, x))), type)};
}

// Adds x and a bias along the last axis, then a skip connection.
std::vector<value> bias_add(node& n) { return {n.b.binary(fn::add, n.b.binary(fn::add, n.in(0), n.in(1)), n.in(2))}; }

// Splits x + bias into halves along the last axis, and multiplies the first by the GELU of the second.
std::vector<value> bias_split_gelu(node& n) {
  value x = biased(n);
  auto last = static_cast<std::int64_t>(x.type().rank()) - 1;
  const dim columns = x.type().dims.back(), half = columns / dim(2);
  if (!columns.is_static() || columns.value() % 2)
    invalid("the last axis of " + n.type(0).str() + " does not have an even size");
  value first = n.b.slice_axis(x, last, 0, half), second = n.b.slice_axis(x, last, half.value(), half);
  return {n.b.to_type(n.b.binary(fn::mul, first, exact_gelu(n.b, second)), n.type(0).type)};
}

// inputs: X, Y like X, gate with one element a row. The product is rounded to the type before it is added.
std::vector<value> gated_add(node& n) {
  builder& b = n.b;
  if (n.has(3)) refuse("a gate that is projected (input 3) is not supported; onnxruntime has it for CUDA only");
  const element_type type = n.type(0).type, wide = compute_type(type);
  value product = b.binary(fn::mul, b.to_type(n.in(1), wide), b.to_type(n.in(2), wide));
  if (product.type().dims != n.dims(0)) invalid("gate " + n.type(2).str() + " does not fit X " + n.type(0).str());
  product = b.to_type(b.to_type(product, type), wide);
  return {b.to_type(b.binary(fn::add, b.to_type(n.in(0), wide), product), type)};
}

constexpr operator_row rows[] = {
    {"GatedAdd", gated_add, 1, "no gate_weight", microsoft_domain},
    {"Swish", standard_swish, 24},
    {"SwiGLU", swiglu, 28},
    {"SwiGLU", clamped_swiglu, 1, "", microsoft_domain},
    {"ScaledSiLU", scaled_silu, 1, "", microsoft_domain},
    {"Gelu", gelu, 1, "", microsoft_domain},
    {"BiasGelu", gelu, 1, "", microsoft_domain},
    {"FastGelu", fast_gelu, 1, "", microsoft_domain},
    {"QuickGelu", quick_gelu, 1, "", microsoft_domain},
    {"BiasAdd", bias_add, 1, "", microsoft_domain},
    {"BiasSplitGelu", bias_split_gelu, 1, "", microsoft_domain},
};

}  // namespace

value activated(node& n, value x) {
  std::string wanted = n.text("activation", "");
  for (const activation_row& row : activations)
    if (row.name == wanted) return row.apply(n, x);
  refuse("activation '" + wanted + "' is not supported");
}

std::span<const operator_row> contrib_activation_operators() { return rows; }

}  // namespace kiln::onnx_import
