#include "aot/onnx/ops/linear_recurrence.hpp"

#include <utility>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

template <class F>
recurrence_inputs each(const recurrence_inputs& x, F f) {
  auto maybe = [&](value v) { return v ? f(v) : v; };
  return {f(x.query), f(x.key), f(x.values), maybe(x.decay), maybe(x.beta)};
}

recurrence_result step(builder& b, const recurrence_inputs& x, value state) {
  element_type type = state.type().type;
  if (x.decay) state = b.binary(fn::mul, state, x.decay);
  value written = x.values;
  if (x.beta)
    written = b.binary(fn::mul, b.binary(fn::sub, written, b.add(dot{false, false, type}, {x.key, state})), x.beta);
  auto column = x.key.type().dims;
  std::swap(column[2], column[3]);
  state = b.binary(fn::add, state, b.binary(fn::mul, b.with_dims(x.key, column), written));
  return {state, b.add(dot{false, false, type}, {x.query, state})};
}

// Runs all steps in a loop. If the number of steps is open, the loop cannot collect the sums; it carries the whole
// tensor of sums and each step writes its row.
recurrence_result all_steps(node& n, const recurrence_inputs& x, value state) {
  builder& b = n.b;
  auto& import = n.owner.state();
  const dim steps = x.key.type().dims.at(0);
  bool open = !steps.is_static();
  auto sum_dims = x.query.type().dims;
  sum_dims.back() = x.values.type().dims.back();
  module& made = import.result.add_module("step_" + std::to_string(import.bodies++));
  builder body(made, b.knowledge(), import.budget);
  value iteration = made.add_parameter("iteration", {element_type::i64, {}});
  value go_on = made.add_parameter("condition", {element_type::boolean, {}});
  value carried = made.add_parameter("state", state.type()), sums;
  std::vector<value> arguments{b.dims_tensor({steps}, 0), b.scalar(element_type::boolean, 1), state};
  if (open) {
    arguments.push_back(b.broadcast_to(b.scalar(state.type().type, 0), sum_dims));
    sums = made.add_parameter("sums", arguments.back().type());
  }
  recurrence_inputs now = each(x, [&](value v) {
    value whole = made.add_parameter("input_" + std::to_string(arguments.size()), v.type());
    arguments.push_back(v);
    return body.add(gather{0}, {whole, iteration});
  });
  recurrence_result done = step(body, now, carried);
  if (open) {
    value here = body.binary(fn::equal, body.iota_like(element_type::i64, {steps}, 0), iteration);
    done.sums = body.where(body.along_axis(here, 0, sum_dims.size()), done.sums, sums);
  }
  made.set_outputs({go_on, done.state, done.sums}, {"condition", "state", "sums"});
  value first = b.add(loop{open ? 2 : 1, open ? -1 : steps.value()}, arguments, {&made});
  return {first, builder::output(first, 1)};
}

}  // namespace

recurrence_result run_recurrence(node& n, const recurrence_inputs& x, value state) {
  if (x.key.type().dims.at(0) != dim(1)) return all_steps(n, x, state);
  builder& b = n.b;
  auto now = [&](value v) {
    auto dims = v.type().dims;
    return b.with_dims(v, std::vector<dim>(dims.begin() + 1, dims.end()));
  };
  recurrence_result done = step(b, each(x, now), state);
  auto dims = done.sums.type().dims;
  dims.insert(dims.begin(), dim(1));
  done.sums = b.with_dims(done.sums, dims);
  return done;
}

value shared_by_heads(builder& b, value x, std::int64_t groups) {
  auto dims = x.type().dims;
  dims.insert(dims.begin() + 3, dim(1));
  x = b.with_dims(x, dims);
  dims[3] = dim(groups) / dims[2];
  x = b.broadcast_to(x, dims);
  dims[2] = groups, dims[3] = 1;
  return b.with_dims(x, dims);
}

value softplus(builder& b, value x) {
  value tail = b.unary(fn::log, b.binary(fn::add, b.unary(fn::exp, b.unary(fn::neg, b.unary(fn::abs, x))), 1.0));
  return b.binary(fn::add, b.unary(fn::relu, x), tail);
}

}  // namespace kiln::onnx_import
