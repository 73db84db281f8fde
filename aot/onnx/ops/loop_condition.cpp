#include "aot/onnx/ops/loop_condition.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/body_module.hpp"

namespace kiln::onnx_import {
namespace {

// `a OP b` holds if and only if b - a + added or, if swapped, a - b + added is positive.
struct comparison_row {
  std::string_view name;
  scalar_function function;
  bool swapped;
  std::int64_t added;
};
constexpr std::array<comparison_row, 4> comparison_rows{{{"Less", scalar_function::less, false, 0},
                                                         {"LessOrEqual", scalar_function::less_equal, false, 1},
                                                         {"Greater", scalar_function::greater, true, 0},
                                                         {"GreaterOrEqual", scalar_function::greater_equal, true, 1}}};

// Operators that pass on a truth value.
constexpr std::array<std::string_view, 7> keeping{"Cast",    "CastLike",  "Identity", "Reshape",
                                                  "Squeeze", "Unsqueeze", "Expand"};

std::optional<dim> number_of(const builder& b, value v) {
  if (auto known = b.known(v); known && known->size() == 1) return known->front();
  const auto fractions = b.fractions_of_value(v);
  const auto integers = fractions ? integers_of(*fractions) : std::nullopt;
  return integers && integers->size() == 1 ? std::optional(integers->front()) : std::nullopt;
}

class condition_reader {
 public:
  condition_reader(node& n, const ::onnx::GraphProto& body) : n_(n), body_(body) {
    for (const auto& each : body.node())
      for (const std::string& name : each.output()) producers_.emplace(name, &each);
  }

  loop_condition read() {
    loop_condition result;
    result.complete = read_part(body_.output(0).name());
    find_candidates();
    while ((!candidates_.empty() || !comparisons_left_.empty()) && !try_candidates(result)) {}
    if (result.countdowns.size() < comparisons_.size()) result.complete = false;
    return result;
  }

 private:
  const ::onnx::NodeProto* producer_of(const std::string& name) const {
    const auto found = producers_.find(name);
    return found == producers_.end() ? nullptr : found->second;
  }

  // Whether the name is a constant of the body that is 0.
  bool is_zero(const std::string& name) const {
    const ::onnx::TensorProto* tensor = nullptr;
    if (const ::onnx::NodeProto* from = producer_of(name)) {
      if (from->op_type() != "Constant" || from->attribute_size() != 1) return false;
      const auto& attribute = from->attribute(0);
      if (attribute.name() == "value_int") return attribute.i() == 0;
      if (attribute.name() == "value") tensor = &attribute.t();
    }
    for (const auto& each : body_.initializer())
      if (each.name() == name) tensor = &each;
    if (!tensor || std::ranges::any_of(tensor->dims(), [](std::int64_t size) { return size != 1; })) return false;
    ::onnx::TensorProto copy = *tensor;
    return n_.owner.tensor(copy, "'" + name + "'").at(0) == 0;
  }

  // Collects the comparisons of the conjunction. Returns false if it has other parts.
  bool read_part(const std::string& name, int depth = 0) {
    const ::onnx::NodeProto* from = producer_of(name);
    if (!from || from->input_size() == 0 || depth > 32) return false;
    const std::string& operation = from->op_type();
    if (std::ranges::count(keeping, operation)) return read_part(from->input(0), depth + 1);
    if (from->input_size() != 2) return false;
    if (operation == "And") {
      const bool first = read_part(from->input(0), depth + 1);
      return read_part(from->input(1), depth + 1) && first;
    }
    // paddle2onnx copies a flag by adding 0 to it as an integer.
    if (operation == "Add")
      for (int side : {0, 1})
        if (is_zero(from->input(side))) return read_part(from->input(1 - side), depth + 1);
    if (std::ranges::find(comparison_rows, operation, &comparison_row::name) == comparison_rows.end()) return false;
    comparisons_.push_back(from);
    return true;
  }

  // Carried integers of one element whose value at the start is known.
  void find_candidates() {
    for (int i = 2; i < body_.input_size() && i <= body_.output_size(); ++i) {
      const auto input = static_cast<std::size_t>(i);
      if (!n_.has(input)) continue;
      const shape& type = n_.type(input);
      const auto known = n_.b.known(n_.in(input));
      if (known && known->size() == 1 && type.is_static() && is_integer(type.type)) candidates_.insert(input - 2);
    }
    drop_unknown();
  }

  // Drops candidates whose next value is computed from other things, and leaves the comparisons of candidates.
  void drop_unknown() {
    comparisons_left_ = comparisons_;
    // Dropping one candidate may leave another without its sources.
    for (bool again = true; again;)
      again = std::erase_if(candidates_, [&](std::size_t i) {
                return !is_computed_from_candidates(body_.output(static_cast<int>(i) + 1).name());
              }) > 0;
    std::erase_if(comparisons_left_, [&](const ::onnx::NodeProto* each) {
      return !is_computed_from_candidates(each->input(0)) || !is_computed_from_candidates(each->input(1));
    });
  }

  // Adds the nodes that compute the name. Returns false if they read anything but constants, values from outside, the
  // number of the trip and candidates.
  bool add_sources(const std::string& name, std::set<const ::onnx::NodeProto*>& nodes) const {
    if (const ::onnx::NodeProto* from = producer_of(name)) {
      if (!nodes.insert(from).second) return true;
      const bool has_body = std::ranges::any_of(from->attribute(), [](const auto& a) { return a.has_g(); });
      return !has_body && nodes.size() < 64 &&
             std::ranges::all_of(from->input(), [&](const std::string& each) { return add_sources(each, nodes); });
    }
    for (int i = 0; i < body_.input_size(); ++i)
      if (body_.input(i).name() == name)
        return i == 0 || (i >= 2 && candidates_.contains(static_cast<std::size_t>(i) - 2));
    return true;
  }

  bool is_computed_from_candidates(const std::string& name) const {
    std::set<const ::onnx::NodeProto*> nodes;
    return add_sources(name, nodes);
  }

  // Imports the sources of the candidates and of the comparisons, with a symbol for each candidate. Returns false, and
  // drops those that do not change by a constant, if there are any.
  bool try_candidates(loop_condition& result) {
    ::onnx::GraphProto part = sources();
    captures outer;
    capture(n_, part, outer);
    body_module trial(n_, "trial");
    const auto add_index = [&](int input, const shape& type, const std::string& role, std::int64_t least) {
      const std::string& name = body_.input(input).name();
      value at = trial.made.add_parameter(name, type);
      const dim symbol = dim::symbol(trial.made.name() + role);
      n_.owner.state().known.facts.set_range(symbol.str(), least, largest_dim);
      trial.b.set_count(symbol, trial.b.with_dims(trial.b.to_type(at, element_type::i64), {1}));
      trial.b.set_known(at, {symbol});
      trial.inside.define(name, at);
      return symbol;
    };
    const dim trip = add_index(0, {element_type::i64, {}}, ".trip", 0);
    std::map<std::size_t, dim> symbols;
    for (std::size_t i : candidates_)
      symbols.emplace(i,
                      add_index(static_cast<int>(i) + 2, n_.type(i + 2), ".carried" + std::to_string(i), -largest_dim));
    trial.capture(outer);
    const std::vector<dim_guard> guards = n_.owner.state().known.guards;
    trial.inside.run(part);
    n_.owner.state().known.guards = guards;
    const std::vector<value> outputs = trial.inside.outputs(part);
    std::map<std::string, dim> at_trip;
    auto output = outputs.begin();
    std::set<std::size_t> uneven;
    for (const auto& [i, symbol] : symbols) {
      const auto next = number_of(trial.b, *output++);
      const dim step = next ? *next - symbol : symbol;
      if (!step.is_static() || step.value() <= -largest_dim || step.value() >= largest_dim) {
        uneven.insert(i);
        continue;
      }
      const induction found{n_.b.known(n_.in(i + 2))->front(), step.value()};
      result.inductions[i] = found;
      at_trip.emplace(symbol.str(), found.at(trip));
    }
    if (!uneven.empty()) {
      result = {{}, {}, result.complete};
      std::erase_if(candidates_, [&](std::size_t i) { return uneven.contains(i); });
      drop_unknown();
      return false;
    }
    for (const ::onnx::NodeProto* each : comparisons_left_) {
      const auto left = number_of(trial.b, *output++), right = number_of(trial.b, *output++);
      if (left && right) add_countdown(result, *each, left->replace(at_trip), right->replace(at_trip), trip);
    }
    return true;
  }

  // The part of the body that computes the next values of the candidates, in their order, and what is compared.
  ::onnx::GraphProto sources() const {
    ::onnx::GraphProto part;
    std::set<const ::onnx::NodeProto*> nodes;
    auto add = [&](const std::string& name) {
      add_sources(name, nodes);
      part.add_output()->set_name(name);
    };
    for (std::size_t i : candidates_) add(body_.output(static_cast<int>(i) + 1).name());
    for (const ::onnx::NodeProto* each : comparisons_left_) add(each->input(0)), add(each->input(1));
    for (const auto& each : body_.node())
      if (nodes.contains(&each)) *part.add_node() = each;
    *part.mutable_initializer() = body_.initializer();
    return part;
  }

  static void add_countdown(loop_condition& result, const ::onnx::NodeProto& comparison, const dim& left,
                            const dim& right, const dim& trip) {
    const auto& row = *std::ranges::find(comparison_rows, comparison.op_type(), &comparison_row::name);
    // Positive if the loop goes on after this trip.
    const dim span = (row.swapped ? left - right : right - left) + dim(row.added);
    const dim first = span.replace({{trip.str(), 0}}), falls = first - span.replace({{trip.str(), 1}});
    if (!falls.is_static() || falls.value() <= 0 || !(first - falls * trip == span)) return;
    result.countdowns.push_back({first + falls, falls.value()});
  }

  node& n_;
  const ::onnx::GraphProto& body_;
  std::map<std::string, const ::onnx::NodeProto*> producers_;
  std::vector<const ::onnx::NodeProto*> comparisons_, comparisons_left_;
  std::set<std::size_t> candidates_;
};

}  // namespace

dim countdown::trips(const dim_facts& facts, std::int64_t least) const {
  return facts.max(step == 1 ? start : (start + dim(step - 1)) / dim(step), least);
}

loop_condition loop_condition::read(node& n, const ::onnx::GraphProto& body) {
  if (body.output_size() == 0) return {};
  return condition_reader(n, body).read();
}

std::optional<dim> compared_numbers(const builder& b, value comparison) {
  const auto* e = comparison.producer->op().get_if<elementwise>();
  const auto row =
      e ? std::ranges::find(comparison_rows, e->function, &comparison_row::function) : comparison_rows.end();
  if (row == comparison_rows.end()) return std::nullopt;
  const auto& inputs = comparison.producer->inputs();
  const auto left = number_of(b, inputs[0]), right = number_of(b, inputs[1]);
  if (!left || !right) return std::nullopt;
  return (row->swapped ? *left - *right : *right - *left) + dim(row->added);
}

}  // namespace kiln::onnx_import
