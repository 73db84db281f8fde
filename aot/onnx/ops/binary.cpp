// Operators that combine tensors element by element, with numpy broadcasting.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns the second operand with dims that follow numpy's broadcasting rules. Before opset 7 its dims match
// consecutive dims of the first operand: the last ones, or those from the attribute `axis` on.
value second_operand(node& n) {
  value y = n.in(1);
  if (n.opset >= 7 || !n.integer("broadcast", 0) || !n.has_attribute("axis")) return y;
  const std::size_t rank = n.rank(0), axis = static_cast<std::size_t>(n.axis("axis", 0, rank));
  if (axis + y.type().rank() > rank) invalid("operand " + y.type().str() + " does not fit " + n.type(0).str());
  std::vector<dim> dims(rank, 1);
  std::ranges::copy(y.type().dims, dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return n.b.with_dims(y, dims);
}

template <fn Function>
std::vector<value> function(node& n) {
  return {n.b.binary(Function, n.in(0), second_operand(n))};
}

// Max, Min and Sum take any number of inputs.
template <fn Function>
value fold(node& n) {
  auto inputs = n.present();
  value result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) result = n.b.binary(Function, result, inputs[i]);
  return result;
}

template <fn Function>
std::vector<value> variadic(node& n) {
  return {fold<Function>(n)};
}

std::vector<value> mean(node& n) {
  return {n.b.binary(fn::div, fold<fn::add>(n), static_cast<double>(n.present().size()))};
}

// The exponent may have a different type; the result has the type of the base.
std::vector<value> pow(node& n) {
  value base = n.in(0), exponent = second_operand(n);
  element_type type = base.type().type;
  if (is_integer(type) && is_float(exponent.type().type)) base = n.b.to_type(base, exponent.type().type);
  exponent = n.b.to_type(exponent, base.type().type);
  return {n.b.to_type(n.b.binary(fn::pow, base, exponent), type)};
}

std::vector<value> mod(node& n) { return {n.b.binary(n.integer("fmod", 0) ? fn::fmod : fn::mod, n.in(0), n.in(1))}; }

std::vector<value> bit_shift(node& n) {
  std::string direction = one_of(n, "direction", "", {"LEFT", "RIGHT"});
  return {n.b.binary(direction == "LEFT" ? fn::shift_left : fn::shift_right, n.in(0), n.in(1))};
}

std::vector<value> where(node& n) { return {n.b.where(n.in(0), n.in(1), n.in(2))}; }

// The slope is broadcast to x, never the other way round.
std::vector<value> prelu(node& n) {
  value x = n.in(0), slope = n.in(1);
  auto dims = slope.type().dims;
  // Models from before broadcasting was defined have one slope per channel as [C].
  if (x.type().rank() > 2 && dims.size() == 1 && dims.at(0) == x.type().dims.at(1) &&
      (n.opset < 7 || !(dims.at(0) == x.type().dims.back())))
    slope = n.b.along_axis(slope, 0, x.type().rank() - 1);
  return {n.b.add(elementwise{fn::prelu}, {x, n.b.broadcast_to(slope, x.type().dims)})};
}

constexpr operator_row rows[] = {
    {"Add", function<fn::add>},
    {"Sub", function<fn::sub>},
    {"Mul", function<fn::mul>},
    {"Div", function<fn::div>},
    {"Pow", pow},
    {"Mod", mod, 10},
    {"And", function<fn::logical_and>},
    {"Or", function<fn::logical_or>},
    {"Xor", function<fn::logical_xor>},
    {"BitwiseAnd", function<fn::bit_and>, 18},
    {"BitwiseOr", function<fn::bit_or>, 18},
    {"BitwiseXor", function<fn::bit_xor>, 18},
    {"BitShift", bit_shift, 11},
    {"Equal", function<fn::equal>, 6, "no strings"},
    {"Greater", function<fn::greater>},
    {"GreaterOrEqual", function<fn::greater_equal>, 12},
    {"Less", function<fn::less>},
    {"LessOrEqual", function<fn::less_equal>, 12},
    {"Max", variadic<fn::max>},
    {"Min", variadic<fn::min>},
    {"Sum", variadic<fn::add>},
    {"Mean", mean},
    {"Where", where, 9, "no strings"},
    {"PRelu", prelu},
};

}  // namespace

std::span<const operator_row> binary_operators() { return rows; }

}  // namespace kiln::onnx_import
