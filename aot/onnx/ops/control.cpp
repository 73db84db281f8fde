// If, Loop and Scan. A body becomes a module. Outer values that it uses become arguments; constants are repeated
// inside.
#include <algorithm>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "ir/ops/choice.hpp"

namespace kiln::onnx_import {
namespace {

// The outer values that bodies take as arguments, without constants, in order of first use.
struct captures {
  std::vector<std::string> names;
  std::vector<value> values;
};

void capture(node& n, const ::onnx::GraphProto& body, captures& into) {
  for (const auto& name : outer_names(body)) {
    value v = n.owner.find(name);
    // An unknown name is reported by the node that uses it.
    if (!v || module::constant(v) || std::ranges::find(into.names, name) != into.names.end()) continue;
    into.names.push_back(name);
    into.values.push_back(v);
  }
}

// A module for a body, its builder and scope. Parameters are added in the order that the caller needs.
struct body_module {
  body_module(node& n, const std::string& role)
      : made(n.owner.state().result.add_module(role + "_" + std::to_string(n.owner.state().bodies++))),
        b(made, n.b.knowledge(), n.owner.state().budget),
        inside(n.owner.state(), b, &n.owner),
        outer(n.b) {}
  void parameter(const std::string& name, const shape& type) { inside.define(name, made.add_parameter(name, type)); }
  void capture(const captures& c) {
    for (std::size_t i = 0; i < c.names.size(); ++i) {
      value p = made.add_parameter("outer." + c.names[i], c.values[i].type());
      if (auto elements = outer.known(c.values[i])) b.set_known(p, *elements);
      inside.define(c.names[i], p);
    }
  }
  module& made;
  builder b;
  scope inside;
  builder& outer;
};

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<value> all_outputs(value first, std::size_t count) {
  std::vector<value> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(builder::output(first, static_cast<std::uint32_t>(i)));
  return results;
}

void check_no_inputs(const ::onnx::GraphProto& graph) {
  if (graph.input_size() != 0) invalid("a branch has inputs");
}

std::vector<value> import_if(node& n) {
  auto &yes = n.graph("then_branch"), &no = n.graph("else_branch");
  check_no_inputs(yes);
  check_no_inputs(no);
  value condition = n.b.with_dims(n.in(0), {});
  // The condition is known at import: the branch becomes part of the enclosing graph.
  if (auto taken = n.b.constant_of(condition)) {
    auto& graph = taken->at_int(0) ? yes : no;
    scope inside(n.owner.state(), n.b, &n.owner);
    inside.run(graph);
    return inside.outputs(graph);
  }
  auto known = n.b.known(condition);
  captures outer;
  capture(n, yes, outer);
  capture(n, no, outer);
  std::vector<module*> bodies;
  std::vector<std::vector<shape>> types;
  for (auto* graph : {&yes, &no}) {
    body_module body(n, graph == &yes ? "then" : "else");
    body.capture(outer);
    body.inside.run(*graph);
    auto outputs = body.inside.outputs(*graph);
    types.emplace_back();
    for (value v : outputs) types.back().push_back(v.type());
    auto names = numbered(outputs.size());
    body.made.set_outputs(std::move(outputs), std::move(names));
    bodies.push_back(&body.made);
  }
  if (types[0].size() != types[1].size()) invalid("its branches have different numbers of outputs");
  if (types[0].empty()) invalid("its branches have no outputs");
  if (known) return all_outputs(n.b.add(choice{*known}, outer.values, bodies), types[0].size());
  for (std::size_t i = 0; i < types[0].size(); ++i)
    if (types[0][i] != types[1][i])
      throw value_needed("its branches give different shapes, " + types[0][i].str() + " and " + types[1][i].str());
  std::vector<value> arguments{condition};
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  return all_outputs(n.b.add(if_else{}, arguments, bodies), types[0].size());
}

// Whether the body never exits early: its condition output is its condition input or constant true.
bool never_stops(const body_module& body, value condition) {
  if (auto constant = body.b.constant_of(condition)) return constant->at_int(0) != 0;
  return condition == body.made.parameters()[1];
}

std::vector<value> import_loop(node& n) {
  auto& graph = n.graph("body");
  builder& b = n.b;
  if (n.inputs() < 2) invalid("trip count and condition are missing");
  std::size_t carried = n.inputs() - 2;
  auto body_inputs = static_cast<std::size_t>(graph.input_size()),
       body_outputs = static_cast<std::size_t>(graph.output_size());
  if (body_inputs != carried + 2)
    invalid("its body has " + std::to_string(body_inputs) + " inputs for " + std::to_string(carried) +
            " carried values");
  if (body_outputs < carried + 1)
    invalid("its body has " + std::to_string(body_outputs) + " outputs for " + std::to_string(carried) +
            " carried values");
  value trips =
      n.has(0) ? b.with_dims(n.in(0), {}) : b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {INT64_MAX}));
  value condition = n.has(1) ? b.with_dims(n.in(1), {}) : b.scalar(element_type::boolean, 1);
  captures outer;
  capture(n, graph, outer);
  body_module body(n, "body");
  std::vector<value> arguments{trips, condition};
  body.parameter(graph.input(0).name(), {element_type::i64, {}});
  body.parameter(graph.input(1).name(), {element_type::boolean, {}});
  for (std::size_t i = 0; i < carried; ++i) {
    arguments.push_back(n.in(i + 2));
    body.parameter(graph.input(static_cast<int>(i) + 2).name(), n.type(i + 2));
  }
  body.capture(outer);
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  body.inside.run(graph);
  auto outputs = body.inside.outputs(graph);
  outputs[0] = body.b.with_dims(outputs[0], {});
  for (std::size_t i = 0; i < carried; ++i)
    if (outputs[i + 1].type() != n.type(i + 2))
      refuse("carried value " + std::to_string(i) + " changes its shape from " + n.type(i + 2).str() + " to " +
             outputs[i + 1].type().str());
  loop op{static_cast<std::int64_t>(carried), -1};
  // Scanned outputs need a static length.
  if (body_outputs > carried + 1) {
    auto count = b.constant_of(trips), start = b.constant_of(condition);
    if (!n.has(0) || !count || !start || !never_stops(body, outputs[0]))
      refuse("it collects values over a number of trips that is not known at import");
    op.trips = start->at_int(0) ? std::max<std::int64_t>(0, count->at_int(0)) : 0;
  }
  auto names = numbered(outputs.size());
  body.made.set_outputs(std::move(outputs), std::move(names));
  if (body_outputs == 1) invalid("it has no outputs");
  return all_outputs(b.add(op, arguments, {&body.made}), body_outputs - 1);
}

// Imports Scan as a loop over the elements of its scan inputs. The body reads them at the index of the iteration.
std::vector<value> import_scan(node& n) {
  auto& graph = n.graph("body");
  builder& b = n.b;
  std::int64_t scanned = n.integer("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<std::size_t>(scanned) > n.inputs())
    invalid("num_scan_inputs is " + std::to_string(scanned) + " for " + std::to_string(n.inputs()) + " inputs");
  auto scans = static_cast<std::size_t>(scanned), states = n.inputs() - scans;
  if (static_cast<std::size_t>(graph.input_size()) != n.inputs())
    invalid("its body has " + std::to_string(graph.input_size()) + " inputs, the node " + std::to_string(n.inputs()));
  if (static_cast<std::size_t>(graph.output_size()) < states || graph.output_size() == 0)
    invalid("its body has too few outputs");
  std::size_t collected = static_cast<std::size_t>(graph.output_size()) - states;
  auto list = [&](const char* name, std::size_t count) {
    auto given = n.integers(name).value_or(std::vector<std::int64_t>(count, 0));
    if (given.size() != count) invalid(std::string(name) + " needs " + std::to_string(count) + " entries");
    return given;
  };
  auto axes = list("scan_input_axes", scans), directions = list("scan_input_directions", scans);
  auto out_axes = list("scan_output_axes", collected), out_directions = list("scan_output_directions", collected);
  captures outer;
  capture(n, graph, outer);
  body_module body(n, "body");
  value iteration = body.made.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.made.add_parameter("condition", {element_type::boolean, {}});
  std::vector<value> arguments{value{}, b.scalar(element_type::boolean, 1)};
  for (std::size_t i = 0; i < states; ++i) {
    arguments.push_back(n.in(i));
    body.parameter(graph.input(static_cast<int>(i)).name(), n.type(i));
  }
  std::int64_t length = -1;
  std::vector<value> whole;
  for (std::size_t i = 0; i < scans; ++i) {
    axes[i] = normalize_axis(axes[i], n.rank(states + i));
    const dim& size = n.dims(states + i)[static_cast<std::size_t>(axes[i])];
    if (!size.is_static()) refuse("scans dimension '" + size.str() + "'; give it a value with --dim");
    if (length >= 0 && size.value() != length) invalid("its scan inputs have different lengths");
    length = size.value();
    arguments.push_back(n.in(states + i));
    whole.push_back(body.made.add_parameter("scanned_" + std::to_string(i), n.type(states + i)));
  }
  body.capture(outer);
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  arguments[0] = b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {length}));
  for (std::size_t i = 0; i < scans; ++i) {
    value last = body.b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {length - 1}));
    value at = directions[i] ? body.b.binary(scalar_function::sub, last, iteration) : iteration;
    body.inside.define(graph.input(static_cast<int>(states + i)).name(), body.b.add(gather{axes[i]}, {whole[i], at}));
  }
  body.inside.run(graph);
  auto outputs = body.inside.outputs(graph);
  for (std::size_t i = 0; i < states; ++i)
    if (outputs[i].type() != n.type(i))
      refuse("state " + std::to_string(i) + " changes its shape from " + n.type(i).str() + " to " +
             outputs[i].type().str());
  outputs.insert(outputs.begin(), go_on);
  auto names = numbered(outputs.size());
  body.made.set_outputs(std::move(outputs), std::move(names));
  auto results =
      all_outputs(b.add(loop{static_cast<std::int64_t>(states), length}, arguments, {&body.made}), states + collected);
  // Scan outputs are stacked along axis 0, first to last.
  for (std::size_t i = 0; i < collected; ++i) {
    value& v = results[states + i];
    auto dims = v.type().dims;
    if (out_directions[i]) {
      slice reversed{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
      reversed.starts[0] = length - 1;
      reversed.steps[0] = -1;
      v = b.add(reversed, {v});
    }
    std::vector<std::int64_t> order;
    for (std::size_t k = 1; k < dims.size(); ++k) order.push_back(static_cast<std::int64_t>(k));
    order.insert(order.begin() + normalize_axis(out_axes[i], dims.size()), 0);
    v = b.permuted(v, order);
  }
  return results;
}

constexpr operator_row rows[] = {
    {"Scan", import_scan, 9, "states keep their shapes; length known at import"},
    {"If", import_if, 7, "branches of equal shapes"},
    {"Loop", import_loop, 7, "carried values keep their shapes; scanned values need a constant trip count"},
};

}  // namespace

std::span<const operator_row> control_operators() { return rows; }

}  // namespace kiln::onnx_import
