// Loop, and the table of control-flow operators.
#include <algorithm>
#include <exception>
#include <functional>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/body_module.hpp"
#include "aot/onnx/ops/collected_sequences.hpp"
#include "aot/onnx/ops/counting_loop.hpp"
#include "aot/onnx/ops/growing_loop.hpp"
#include "aot/onnx/ops/if.hpp"
#include "aot/onnx/ops/loop.hpp"
#include "aot/onnx/ops/pasted_masks.hpp"
#include "aot/onnx/ops/repeated_pieces.hpp"

namespace kiln::onnx_import {
namespace {

loop_parts parts_of(node& n, const ::onnx::GraphProto& graph) {
  builder& b = n.b;
  if (n.inputs() < 2) invalid("trip count and condition are missing");
  refuse_compound(n, 0);
  refuse_compound(n, 1);
  std::size_t carried = n.inputs() - 2;
  const auto body_inputs = static_cast<std::size_t>(graph.input_size()),
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
  if (body_outputs == 1) invalid("it has no outputs");
  return {trips, condition, carried, body_outputs};
}

// Imports one copy of the body per trip into the enclosing module. Carried values may be sequences, and their shapes
// may change from trip to trip.
std::vector<value> unrolled_loop(node& n, const ::onnx::GraphProto& graph, const loop_parts& parts,
                                 std::int64_t trips) {
  builder& b = n.b;
  import_state& state = n.owner.state();
  std::vector<value> carried;
  for (std::size_t i = 0; i < parts.carried; ++i) carried.push_back(n.in(i + 2));
  std::vector<std::vector<value>> scanned(parts.outputs - parts.carried - 1);
  value condition = parts.condition;
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    auto goes_on = b.constant_of(b.with_dims(condition, {}));
    if (!goes_on) refuse("its condition depends on data, so its trips cannot be imported one by one");
    if (goes_on->at_int(0) == 0) break;
    state.budget.take_copy(graph.ByteSizeLong());
    ::onnx::GraphProto copy = graph;
    scope inside(state, b, &n.owner);
    inside.define(copy.input(0).name(), b.scalar(element_type::i64, static_cast<double>(trip)));
    inside.define(copy.input(1).name(), b.scalar(element_type::boolean, 1));
    for (std::size_t i = 0; i < parts.carried; ++i)
      inside.define(copy.input(static_cast<int>(i) + 2).name(), carried[i]);
    inside.run(copy);
    auto outputs = inside.outputs(copy);
    condition = outputs[0];
    for (std::size_t i = 0; i < parts.carried; ++i) carried[i] = outputs[i + 1];
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      value each = outputs[i + parts.carried + 1];
      auto dims = each.type().dims;
      dims.insert(dims.begin(), 1);
      scanned[i].push_back(b.with_dims(each, dims));
    }
  }
  for (const auto& each : scanned) {
    if (each.empty()) refuse("it collects values and makes no trips, so their shape is not known");
    carried.push_back(each.size() == 1 ? each[0] : b.add(concat{0}, each));
  }
  return carried;
}

std::vector<value> loop_with_body(node& n, ::onnx::GraphProto& graph, const loop_parts& parts) {
  builder& b = n.b;
  const auto [trips, condition, carried, body_outputs] = parts;
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
  for (std::size_t i = 0; i < carried; ++i) outputs[i + 1] = with_rank_of(body.b, outputs[i + 1], n.type(i + 2));
  for (std::size_t i = 0; i < carried; ++i)
    if (outputs[i + 1].type() != n.type(i + 2) || find_compound(n.owner.state(), outputs[i + 1]))
      refuse("carried value " + std::to_string(i) + " changes its shape from " + n.type(i + 2).str() + " to " +
             outputs[i + 1].type().str());
  for (std::size_t i = carried + 1; i < outputs.size(); ++i)
    if (has_bounded_dims(outputs[i].type()))
      refuse("it collects values whose sizes depend on data: " + outputs[i].type().str());
  loop op{static_cast<std::int64_t>(carried), -1};
  // The length of scanned outputs must follow from sizes.
  if (body_outputs > carried + 1) {
    const auto count = b.known(trips);
    const auto start = b.constant_of(condition);
    if (!n.has(0) || !count || is_bounded(count->front()) || !start || !never_stops(body, outputs[0]))
      refuse("it collects values over a number of trips that is not known at import");
    const dim length = start->at_int(0) ? b.facts().max(count->front(), 0) : dim(0);
    if (length.is_static()) op.trips = length.value();
    else op.open_trips = {length};
  }
  auto names = numbered(outputs.size());
  body.made.set_outputs(std::move(outputs), std::move(names));
  return all_outputs(b.add(op, arguments, {&body.made}), body_outputs - 1);
}

// Tries several ways of importing a node in order and returns the result of the first one that succeeds. If none does,
// throws the error of the first way.
std::vector<value> first_way(node& n, std::span<const std::function<std::vector<value>()>> ways) {
  import_state& state = n.owner.state();
  const int depth = state.depth;
  const std::size_t bounded = state.bounded.size();
  // Returns true if the failed way has left bounded counts in this module. (Counts in a body are deleted with the
  // body.)
  auto leaves_counts = [&] {
    return std::any_of(state.bounded.begin() + static_cast<std::ptrdiff_t>(bounded), state.bounded.end(),
                       [&](const bounded_dim& each) {
                         return std::ranges::any_of(n.b.target().instructions(),
                                                    [&](const instruction& i) { return &i == each.count.producer; });
                       });
  };
  std::exception_ptr why;
  for (const auto& way : ways) {
    try {
      return way();
    } catch (const error& e) {
      // Shapes that do not fit where an index is unknown may fit where it is known (growing_loop.hpp).
      const bool may_fit = e.kind() == error_kind::unsupported || e.kind() == error_kind::invalid_model;
      if (!may_fit || leaves_counts()) throw;
      // The next attempt of the import has the elements of small inputs as symbols, which may be enough for this way.
      if (const auto* needed = dynamic_cast<const value_needed*>(&e); needed && !state.values_as_symbols) throw;
      if (!why) why = std::current_exception();
      state.depth = depth;
    }
  }
  std::rethrow_exception(why);
}

}  // namespace

// A body becomes a module if possible. It cannot if the loop carries sequences, if carried values change their shapes,
// or if operators need the index of the trip at import. Then a loop with a small, known trip count is unrolled. For
// other loops, carried values may grow evenly (growing_loop.hpp).
std::vector<value> import_loop(node& n) {
  constexpr std::int64_t most_unrolled = 256;
  auto& graph = n.graph("body");
  import_state& state = n.owner.state();
  if (auto counting = counting_loop::find(n, graph)) {
    node inner(n.owner, n.b, counting->proto, n.opset, counting->inputs);
    return import_loop(inner);
  }
  const loop_parts parts = parts_of(n, graph);
  if (auto images = pasted_masks(n, graph)) return {*images};
  auto count = n.b.constant_of(parts.trips);
  const bool carries_compounds = std::ranges::any_of(n.all(), [&](value v) { return v && find_compound(state, v); });
  if (carries_compounds && (!count || count->at_int(0) > most_unrolled)) {
    std::vector<std::function<std::vector<value>()>> ways;
    if (auto collected = collected_sequences::find(n, graph))
      ways.emplace_back([&n, collected = std::move(*collected)]() mutable {
        node inner(n.owner, n.b, collected.proto(), n.opset, collected.inputs());
        return collected.results(n, import_loop(inner));
      });
    if (auto pieces = repeated_pieces::find(n, graph))
      ways.emplace_back([&n, pieces = std::move(*pieces)]() mutable {
        node inner(n.owner, n.b, pieces.proto(), n.opset, pieces.inputs());
        return pieces.results(n, import_loop(inner));
      });
    if (!ways.empty()) return first_way(n, ways);
  }
  if (carries_compounds && !count)
    throw value_needed("carries a sequence or an optional, so its trip count must be known at import");
  if (carries_compounds && count->at_int(0) > most_unrolled)
    refuse("carries a sequence over " + std::to_string(count->at_int(0)) + " trips; at most " +
           std::to_string(most_unrolled) + " are supported");
  if (carries_compounds) return unrolled_loop(n, graph, parts, count->at_int(0));
  state.budget.take_copy(graph.ByteSizeLong());
  const ::onnx::GraphProto kept = graph;  // an import consumes the graph
  using importer = std::function<std::vector<value>()>;
  std::vector<importer> ways{[&] { return loop_with_body(n, graph, parts); }};
  if (count && count->at_int(0) <= most_unrolled)
    ways.emplace_back([&] { return unrolled_loop(n, kept, parts, count->at_int(0)); });
  ways.emplace_back([&] { return growing_loop(n, kept, parts); });
  return first_way(n, ways);
}

namespace {

constexpr operator_row rows[] = {
    {"If", import_if, 6, "branches of equal ranks, or ranks that differ by axes of 1", "", true},
    {"Loop", import_loop, 6, "carried values keep their shapes or grow; the most trips are known before the run", "",
     true},
};

}  // namespace

std::span<const operator_row> control_operators() { return rows; }

}  // namespace kiln::onnx_import
