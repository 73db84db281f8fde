// Optimizer steps (ai.onnx.preview.training): Adagrad, Adam and Momentum, with the formulas of the operators'
// specification.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
constexpr std::string_view training_domain = "ai.onnx.preview.training";

// Inputs of an optimizer step: the learning rate R, the update count T, then `lists` lists of tensors: parameters,
// gradients, and accumulated values.
struct step {
  step(node& n, std::size_t lists) : n(n), b(n.b), type(n.type(2).type), rate(b.to_type(scalar_of(0), type)) {
    if (n.inputs() < 2 + lists || (n.inputs() - 2) % lists != 0)
      invalid("has " + std::to_string(n.inputs()) + " inputs: R, T and " + std::to_string(lists) +
              " lists of tensors of one length are expected");
    count = (n.inputs() - 2) / lists;
  }
  value scalar_of(std::size_t i) const { return b.with_dims(n.in(i), {}); }
  value updates() const { return b.to_type(scalar_of(1), type); }
  value in(std::size_t list, std::size_t i) const { return n.in(2 + list * count + i); }
  value real(double v) const { return b.scalar(type, v); }
  value add(value x, value y) const { return b.binary(fn::add, x, y); }
  value mul(value x, value y) const { return b.binary(fn::mul, x, y); }
  value div(value x, value y) const { return b.binary(fn::div, x, y); }
  value sub(value x, value y) const { return b.binary(fn::sub, x, y); }
  // Returns the gradient plus the derivative of the L2 regularization.
  value gradient(std::size_t i) const { return add(mul(real(n.real("norm_coefficient", 0)), in(0, i)), in(1, i)); }
  // Returns `no` for the first update and `yes` for every later one.
  value after_first(value yes, value no) const { return b.where(b.binary(fn::greater, scalar_of(1), 0.0), yes, no); }

  node& n;
  builder& b;
  element_type type;
  value rate;
  std::size_t count = 0;
};

std::vector<value> joined(std::initializer_list<std::vector<value>> lists) {
  std::vector<value> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<value> adagrad(node& n) {
  step s(n, 3);
  value decay = s.add(s.real(1), s.mul(s.updates(), s.real(n.real("decay_factor", 0))));
  value rate = s.div(s.rate, decay);
  std::vector<value> parameters, squares;
  for (std::size_t i = 0; i < s.count; ++i) {
    value gradient = s.gradient(i), square = s.add(s.in(2, i), s.mul(gradient, gradient));
    value adaptive = s.add(s.b.unary(fn::sqrt, square), s.real(n.real("epsilon", 1e-6)));
    parameters.push_back(s.sub(s.in(0, i), s.div(s.mul(rate, gradient), adaptive)));
    squares.push_back(square);
  }
  return joined({parameters, squares});
}

std::vector<value> adam(node& n) {
  step s(n, 4);
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999);
  auto remainder = [&](double base) { return s.sub(s.real(1), s.b.binary(fn::pow, s.real(base), s.updates())); };
  value rate = s.after_first(s.div(s.mul(s.rate, s.b.unary(fn::sqrt, remainder(beta))), remainder(alpha)), s.rate);
  std::vector<value> parameters, means, squares;
  for (std::size_t i = 0; i < s.count; ++i) {
    value gradient = s.gradient(i);
    value mean = s.add(s.mul(s.real(alpha), s.in(2, i)), s.mul(s.real(1 - alpha), gradient));
    value square = s.add(s.mul(s.real(beta), s.in(3, i)), s.mul(s.real(1 - beta), s.mul(gradient, gradient)));
    value root = s.add(s.b.unary(fn::sqrt, square), s.real(n.real("epsilon", 1e-6)));
    value moved = s.sub(s.in(0, i), s.div(s.mul(rate, mean), root));
    parameters.push_back(s.mul(s.real(1 - n.real("norm_coefficient_post", 0)), moved));
    means.push_back(mean);
    squares.push_back(square);
  }
  return joined({parameters, means, squares});
}

std::vector<value> momentum(node& n) {
  step s(n, 3);
  const double alpha = n.real("alpha", 0);
  std::string mode = one_of(n, "mode", "", {"standard", "nesterov"});
  value beta = s.after_first(s.real(n.real("beta", 0)), s.real(1));
  std::vector<value> parameters, momenta;
  for (std::size_t i = 0; i < s.count; ++i) {
    value gradient = s.gradient(i);
    value next = s.add(s.mul(s.real(alpha), s.in(2, i)), s.mul(beta, gradient));
    value direction = mode == "standard" ? next : s.add(gradient, s.mul(s.real(alpha), next));
    parameters.push_back(s.sub(s.in(0, i), s.mul(s.rate, direction)));
    momenta.push_back(next);
  }
  return joined({parameters, momenta});
}

constexpr operator_row rows[] = {
    {"Adagrad", adagrad, 1, "", training_domain},
    {"Adam", adam, 1, "", training_domain},
    {"Momentum", momentum, 1, "", training_domain},
};

}  // namespace

std::span<const operator_row> training_operators() { return rows; }

}  // namespace kiln::onnx_import
