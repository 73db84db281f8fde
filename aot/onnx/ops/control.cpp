// If and Loop.
#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <optional>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/body_module.hpp"
#include "aot/onnx/ops/growing_loop.hpp"
#include "aot/onnx/ops/merged_branches.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/ops/choice.hpp"

namespace kiln::onnx_import {
namespace {

void check_no_inputs(const ::onnx::GraphProto& graph) {
  if (graph.input_size() != 0) invalid("a branch has inputs");
}

// The branch as part of the enclosing graph.
std::vector<value> inlined(node& n, ::onnx::GraphProto& graph) {
  scope inside(n.owner.state(), n.b, &n.owner);
  inside.run(graph);
  return inside.outputs(graph);
}

// While it lives, guards count only where `condition` is 1, too.
class taken_where {
 public:
  taken_where(dim& when, const dim& condition) : when_(when), around_(when) { when_ = around_ * condition; }
  ~taken_where() { when_ = around_; }
  taken_where(const taken_where&) = delete;

 private:
  dim& when_;
  const dim around_;
};

// As modules of their own. Throws what the import of a branch throws.
struct branch_bodies {
  std::vector<module*> bodies;
  std::vector<std::vector<shape>> types;  // of their outputs
};

// Guards that a branch needs count where `condition` takes it.
branch_bodies import_branches(node& n, std::span<::onnx::GraphProto* const> graphs, const captures& outer,
                              const std::optional<dim>& condition = std::nullopt) {
  branch_bodies result;
  dim& when = n.owner.state().known.when;
  for (auto* graph : graphs) {
    const taken_where inside(when, condition ? graph == graphs[0] ? *condition : dim(1) - *condition : dim(1));
    body_module body(n, graph == graphs[0] ? "then" : "else");
    body.capture(outer);
    body.inside.run(*graph);
    auto outputs = body.inside.outputs(*graph);
    result.types.emplace_back();
    for (value v : outputs) {
      if (find_compound(n.owner.state(), v))
        throw value_needed("a branch gives a sequence or an optional, so its condition must be known at import");
      result.types.back().push_back(v.type());
    }
    auto names = numbered(outputs.size());
    body.made.set_outputs(std::move(outputs), std::move(names));
    result.bodies.push_back(&body.made);
  }
  const auto& types = result.types;
  if (types[0].size() != types[1].size()) invalid("its branches have different numbers of outputs");
  if (types[0].empty()) invalid("its branches have no outputs");
  return result;
}

bool same_ranks(const std::vector<shape>& a, const std::vector<shape>& b) {
  return std::ranges::equal(
      a, b, {}, [](const shape& s) { return s.dims.size(); }, [](const shape& s) { return s.dims.size(); });
}

// A condition that compares sizes. The branches stay, and the sizes choose one, unless they give different ranks or one
// of them makes no sense for sizes that are not its own.
std::vector<value> import_if_on_sizes(node& n, ::onnx::GraphProto& yes, ::onnx::GraphProto& no,
                                      const known_elements& condition) {
  branch_decisions& branches = *n.owner.state().branches;
  const int number = branches.number();
  if (auto taken = branches.taken(number)) {
    n.b.need_equal(condition[0], *taken ? 1 : 0,
                   std::string("other sizes take the ") + (*taken ? "else" : "then") +
                       " branch, which gives another rank; compile the model for them with --dim, or fix with --value "
                       "the input that keeps this node from running");
    return inlined(n, *taken ? yes : no);
  }
  captures outer;
  capture(n, yes, outer);
  capture(n, no, outer);
  try {
    branch_bodies made = import_branches(n, std::array{&yes, &no}, outer, condition[0]);
    if (!same_ranks(made.types[0], made.types[1]))
      throw value_needed("its branches give different ranks; give the input that chooses one with --value");
    return all_outputs(n.b.add(choice{condition}, outer.values, made.bodies), made.types[0].size());
  } catch (const error&) {
    const auto is_data = [](const std::string& symbol) { return symbol.starts_with(value_prefix); };
    if (std::ranges::none_of(condition[0].symbols(), is_data)) branches.want(number);  // data is not assumed
    throw;
  }
}

std::vector<value> import_if(node& n) {
  auto &yes = n.graph("then_branch"), &no = n.graph("else_branch");
  check_no_inputs(yes);
  check_no_inputs(no);
  refuse_compound(n, 0);
  value condition = n.b.with_dims(n.in(0), {});
  // The condition is known at import: the branch becomes part of the enclosing graph.
  if (auto taken = n.b.constant_of(condition)) return inlined(n, taken->at_int(0) ? yes : no);
  auto known = n.b.known(condition);
  if (known && has_bounded_dims({element_type::i64, *known})) known.reset();
  if (known) return import_if_on_sizes(n, yes, no, *known);
  if (needs_bounded_dims(n, yes) || needs_bounded_dims(n, no)) {
    auto first = inlined(n, yes), second = inlined(n, no);
    return merged_branches(n, condition, first, second);
  }
  captures outer;
  capture(n, yes, outer);
  capture(n, no, outer);
  const std::size_t guards = n.owner.state().known.guards.size();
  auto [bodies, types] = import_branches(n, std::array{&yes, &no}, outer);
  if (n.owner.state().known.guards.size() > guards && !n.owner.state().values_as_symbols)
    throw value_needed("a branch fits certain sizes only, so its condition must be known at import");
  for (std::size_t i = 0; i < types[0].size(); ++i) {
    if (types[0][i] == types[1][i]) continue;
    // If elements of inputs decide, only one of the branches is left when they are given.
    if (!n.owner.state().values_as_symbols || &n.b.target() != &n.owner.state().result.main())
      throw value_needed("its branches give different shapes, " + types[0][i].str() + " and " + types[1][i].str());
    std::vector<std::vector<value>> results;
    for (const module* body : bodies) results.push_back(n.b.target().inline_module(*body, outer.values));
    return merged_branches(n, condition, results[0], results[1]);
  }
  std::vector<value> arguments{condition};
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  return all_outputs(n.b.add(if_else{}, arguments, bodies), types[0].size());
}

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

// One copy of the body for each trip, in the enclosing module. Carried values may be sequences and may change their
// shapes from trip to trip.
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
  for (std::size_t i = 0; i < carried; ++i)
    if (outputs[i + 1].type() != n.type(i + 2) || find_compound(n.owner.state(), outputs[i + 1]))
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
  return all_outputs(b.add(op, arguments, {&body.made}), body_outputs - 1);
}

// Returns the result of the first way that is supported; refuses for the reason of the first one.
std::vector<value> first_way(node& n, std::span<const std::function<std::vector<value>()>> ways) {
  import_state& state = n.owner.state();
  const int depth = state.depth;
  const std::size_t bounded = state.bounded.size();
  std::exception_ptr why;
  for (const auto& way : ways) {
    try {
      return way();
    } catch (const error& e) {
      if (e.kind() != error_kind::unsupported || state.bounded.size() != bounded) throw;
      // The elements of inputs may be what is missing.
      if (const auto* needed = dynamic_cast<const value_needed*>(&e); needed && !state.values_as_symbols) throw;
      if (!why) why = std::current_exception();
      state.depth = depth;
    }
  }
  std::rethrow_exception(why);
}

// A loop whose trips are few and known is imported trip by trip if its body cannot become a module: it carries
// sequences, its values change their shapes, or operators need the number of the trip. Other loops may carry values
// that grow (growing_loop.hpp).
std::vector<value> import_loop(node& n) {
  constexpr std::int64_t most_unrolled = 256;
  auto& graph = n.graph("body");
  import_state& state = n.owner.state();
  const loop_parts parts = parts_of(n, graph);
  auto count = n.b.constant_of(parts.trips);
  const bool carries_compounds = std::ranges::any_of(n.all(), [&](value v) { return v && find_compound(state, v); });
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

constexpr operator_row rows[] = {
    {"If", import_if, 6, "branches of equal ranks", "", true},
    {"Loop", import_loop, 6, "carried values keep their shapes or grow evenly; the most trips are known before the run",
     "", true},
};

}  // namespace

std::span<const operator_row> control_operators() { return rows; }

}  // namespace kiln::onnx_import
