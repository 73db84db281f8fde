#include "aot/onnx/ops/recurrent_steps.hpp"

#include <algorithm>
#include <cctype>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

struct activation_row {
  std::string_view name;
  // Number of parameters: 0, 1 (alpha) or 2 (alpha, beta).
  int parameters;
  double alpha, beta;
  value (*apply)(builder& b, value x, const recurrent_activation& a);
};

value scaled(builder& b, value x, double factor, double offset) {
  return b.binary(fn::add, b.binary(fn::mul, x, factor), offset);
}
value clamped(builder& b, value x, double low, double high) {
  return b.binary(fn::min, b.binary(fn::max, x, low), high);
}
template <fn Function>
value plain(builder& b, value x, const recurrent_activation&) {
  return b.unary(Function, x);
}

const activation_row activation_rows[] = {
    {"relu", 0, 0, 0, plain<fn::relu>},
    {"tanh", 0, 0, 0, plain<fn::tanh>},
    {"sigmoid", 0, 0, 0, plain<fn::sigmoid>},
    {"affine", 2, 1, 0,
     [](builder& b, value x, const recurrent_activation& a) { return scaled(b, x, a.alpha, a.beta); }},
    {"leakyrelu", 1, 0.01, 0,
     [](builder& b, value x, const recurrent_activation& a) { return b.binary(fn::prelu, x, a.alpha); }},
    {"thresholdedrelu", 1, 1, 0,
     [](builder& b, value x, const recurrent_activation& a) {
       return b.where(b.binary(fn::greater, x, a.alpha), x, b.scalar(x.type().type, 0));
     }},
    {"scaledtanh", 2, 1, 1,
     [](builder& b, value x, const recurrent_activation& a) {
       return b.binary(fn::mul, b.unary(fn::tanh, b.binary(fn::mul, x, a.beta)), a.alpha);
     }},
    {"hardsigmoid", 2, 0.2, 0.5,
     [](builder& b, value x, const recurrent_activation& a) {
       return clamped(b, scaled(b, x, a.alpha, a.beta), 0, 1);
     }},
    {"elu", 1, 1, 0,
     [](builder& b, value x, const recurrent_activation& a) {
       value curve = b.binary(fn::sub, b.unary(fn::exp, b.binary(fn::min, x, 0.0)), 1.0);
       return b.binary(fn::add, b.unary(fn::relu, x), b.binary(fn::mul, curve, a.alpha));
     }},
    {"softsign", 0, 0, 0,
     [](builder& b, value x, const recurrent_activation&) {
       return b.binary(fn::div, x, b.binary(fn::add, b.unary(fn::abs, x), 1.0));
     }},
    {"softplus", 0, 0, 0,
     [](builder& b, value x, const recurrent_activation&) {
       value tail = b.unary(fn::log, b.binary(fn::add, b.unary(fn::exp, b.unary(fn::neg, b.unary(fn::abs, x))), 1.0));
       return b.binary(fn::add, b.unary(fn::relu, x), tail);
     }},
};

const activation_row& row_of(const std::string& name) {
  auto found = std::ranges::find(activation_rows, name, &activation_row::name);
  if (found == std::end(activation_rows)) refuse("activation '" + name + "' is not supported");
  return *found;
}

// One time step, built in the module of the loop's body.
struct cell {
  builder& b;
  const recurrent_direction& layer;
  std::int64_t hidden;
  value x, weights, bias, h, c, peepholes;

  value applied(std::size_t which, value v) const {
    const recurrent_activation& a = layer.activations.at(which);
    return row_of(a.name).apply(b, v, a);
  }
  // Applies an activation to a gate after clipping its sum.
  value activated(std::size_t which, value v) const {
    return applied(which, layer.clip > 0 ? clamped(b, v, -layer.clip, layer.clip) : v);
  }
  value gate_of(value gates, std::int64_t i) const { return b.slice_axis(gates, 1, i * hidden, hidden); }
  value from_state(value state, value w) const { return b.add(dot{false, true, x.type().type}, {state, w}); }
  value add(value p, value q) const { return b.binary(fn::add, p, q); }
  value mul(value p, value q) const { return b.binary(fn::mul, p, q); }
  value rest(value share) const { return b.binary(fn::sub, b.scalar(share.type().type, 1), share); }
  // Adds the peephole contribution of the cell state to gate `i`. Peepholes are ordered input, output, forget.
  value peeped(value sum, std::int64_t i, value state) const {
    return peepholes ? add(sum, mul(b.slice_axis(peepholes, 0, i * hidden, hidden), state)) : sum;
  }

  void rnn() { h = activated(0, add(x, add(from_state(h, weights), bias))); }

  void gru() {
    value of_state = add(from_state(h, weights), bias);
    value update = activated(0, add(gate_of(x, 0), gate_of(of_state, 0)));
    value reset = activated(0, add(gate_of(x, 1), gate_of(of_state, 1)));
    value late = layer.op.linear_before_reset
                     ? mul(reset, gate_of(of_state, 2))
                     : add(from_state(mul(reset, h), b.slice_axis(weights, 0, 2 * hidden, hidden)),
                           b.slice_axis(bias, 0, 2 * hidden, hidden));
    value fresh = activated(1, add(gate_of(x, 2), late));
    h = add(mul(rest(update), fresh), mul(update, h));
  }

  void lstm() {
    value gates = add(x, add(from_state(h, weights), bias));
    value input = activated(0, peeped(gate_of(gates, 0), 0, c));
    value forget = layer.input_forget ? rest(input) : activated(0, peeped(gate_of(gates, 2), 2, c));
    c = add(mul(forget, c), mul(input, activated(1, gate_of(gates, 3))));
    value output = activated(0, peeped(gate_of(gates, 1), 1, c));
    // onnxruntime does not clip the cell, so neither do we.
    h = mul(output, applied(2, c));
  }

  void step() {
    switch (layer.op.cell) {
      case recurrent_cell::rnn: return rnn();
      case recurrent_cell::gru: return gru();
      case recurrent_cell::lstm: return lstm();
    }
  }
};

}  // namespace

std::vector<recurrent_activation> activations_of(const node& n, const std::vector<std::string>& defaults,
                                                 std::size_t d) {
  auto names = n.texts("activations");
  auto reals = [&](std::string_view name) {
    const auto* a = n.attribute(name);
    return a ? std::vector<float>(a->floats().begin(), a->floats().end()) : std::vector<float>{};
  };
  const std::vector<float> alphas = reals("activation_alpha"), betas = reals("activation_beta");
  if (names.empty())
    for (std::size_t k = 0; k <= d; ++k) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() < (d + 1) * defaults.size())
    invalid("has " + std::to_string(names.size()) + " activations, a direction needs " +
            std::to_string(defaults.size()));
  // Parameters are in separate lists (alpha, beta). Each activation that has a parameter takes the next entry.
  std::vector<recurrent_activation> all;
  std::size_t alpha = 0, beta = 0;
  for (std::string name : names) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const activation_row& row = row_of(name);
    recurrent_activation a{name, row.alpha, row.beta};
    if (row.parameters > 0 && alpha < alphas.size()) a.alpha = static_cast<double>(alphas[alpha++]);
    if (row.parameters > 1 && beta < betas.size()) a.beta = static_cast<double>(betas[beta++]);
    all.push_back(std::move(a));
  }
  auto first = all.begin() + static_cast<std::ptrdiff_t>(d * defaults.size());
  return {first, first + static_cast<std::ptrdiff_t>(defaults.size())};
}

std::vector<value> stepped_direction(node& n, const recurrent_direction& layer) {
  builder& outer = n.b;
  import_state& state = n.owner.state();
  if (layer.h.type().rank() != 2 || (layer.c && layer.c.type().rank() != 2))
    invalid("an initial state of one direction has rank 2, not " + layer.h.type().str());
  const dim steps = layer.products.type().dims.at(0), batch = layer.h.type().dims.at(0);
  const std::int64_t hidden = static_dim(layer.h.type().dims.at(1), "a loop over time steps");
  const bool is_lstm = layer.op.cell == recurrent_cell::lstm;
  module& body = state.result.add_module("steps_" + std::to_string(state.bodies++));
  builder b(body, outer.knowledge(), state.budget);
  value iteration = body.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.add_parameter("condition", {element_type::boolean, {}});
  std::vector<value> arguments{outer.data_of(steps), outer.scalar(element_type::boolean, 1)};
  auto passed = [&](const std::string& name, value v) {
    if (!v) return value{};
    arguments.push_back(v);
    return body.add_parameter(name, v.type());
  };
  value h = passed("h", layer.h), c = is_lstm ? passed("c", layer.c) : value{};
  // A loop collects results only over a number of trips that is known now. With an open length the body writes each
  // result into a carried buffer.
  const bool collects = steps.is_static();
  const dim width(hidden);
  value results = passed(
      "results", collects ? value{} : outer.broadcast_to(outer.scalar(layer.h.type().type, 0), {steps, batch, width}));
  value products = passed("products", layer.products), weights = passed("weights", layer.weights);
  value bias = passed("bias", layer.bias), peepholes = passed("peepholes", layer.peepholes);
  value lengths = passed("lengths", layer.lengths);
  value last = passed("last", layer.op.reverse ? outer.data_of(steps - dim(1)) : value{});

  value time = last ? b.binary(fn::sub, last, iteration) : iteration;
  cell now{b, layer, hidden, b.add(gather{0}, {products, time}), weights, bias, h, c, peepholes};
  now.step();
  value y = now.h;
  // Past the end of a sequence, the state stays and the output is 0.
  if (lengths) {
    value inside = b.binary(fn::less, time, b.to_type(lengths, element_type::i64));
    inside = b.with_dims(inside, {batch, 1});
    y = b.where(inside, now.h, b.scalar(now.h.type().type, 0));
    now.h = b.where(inside, now.h, h);
    if (is_lstm) now.c = b.where(inside, now.c, c);
  }
  if (results) {
    value here = b.with_dims(b.iota_like(element_type::i64, {steps}, 0), {steps, 1, 1});
    y = b.where(b.binary(fn::equal, here, time), b.with_dims(y, {1, batch, width}), results);
  }
  std::vector<value> outputs{go_on, now.h};
  if (is_lstm) outputs.push_back(now.c);
  outputs.push_back(y);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back(std::to_string(i));
  body.set_outputs(outputs, names);
  const std::int64_t states = is_lstm ? 2 : 1;
  value first = outer.add(collects ? loop{states, steps.value()} : loop{states + 1, -1}, arguments, {&body});
  auto result = [&](std::uint32_t i) { return builder::output(first, i); };
  value stacked = result(is_lstm ? 2 : 1);
  // Results that the loop collects stand in the order of its trips, which for a reversed layer is not that of time. A
  // buffer that the loop carries is written at each step's own place.
  if (collects && layer.op.reverse && steps.value() > 1) {
    const auto& dims = stacked.type().dims;
    stacked = outer.add(slice{{steps.value() - 1, 0, 0}, dims, {-1, 1, 1}}, {stacked});
  }
  std::vector<value> made{stacked, result(0)};
  if (is_lstm) made.push_back(result(1));
  return made;
}

}  // namespace kiln::onnx_import
