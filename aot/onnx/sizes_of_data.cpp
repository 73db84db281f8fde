#include "aot/onnx/sizes_of_data.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/trip_bounds.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/ops/all.hpp"
#include "ir/size_stages.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Operations whose result follows from elements of their inputs without rounding, if all are integers.
bool is_simple(const instruction& i) {
  constexpr std::array arithmetic{fn::add,   fn::sub,  fn::mul,     fn::min,        fn::max,          fn::where,
                                  fn::equal, fn::less, fn::greater, fn::less_equal, fn::greater_equal};
  if (const auto* e = i.op().get_if<elementwise>())
    return std::ranges::find(arithmetic, e->function) != arithmetic.end();
  if (const auto* g = i.op().get_if<gather>()) return g->axis == 0;
  return i.op().is<convert>() || i.op().is<reshape>() || i.op().is<concat>() || i.op().is<slice>() ||
         i.op().is<broadcast>() || i.op().is<transpose>();
}

bool is_main(const node& n) { return &n.b.target() == &n.owner.state().result.main(); }

bool is_small_list(const shape& type) {
  return type.is_static() && (is_integer(type.type) || type.type == element_type::boolean) &&
         type.element_count() > 0 && type.element_count() <= max_value_elements;
}

class knowing {
 public:
  knowing(const node& n, std::string name) : n_(n), state_(n.owner.state()), b_(n.b), name_(std::move(name)) {}

  std::optional<known_elements> know(value v) {
    if (auto elements = b_.known(v)) return *elements;
    if (v.index == 0 && is_simple(*v.producer) && ++depth_ < most_steps &&
        std::ranges::all_of(v.producer->inputs(), [](value x) { return is_small_list(x.type()); })) {
      for (value input : v.producer->inputs()) know(input);
      if (auto elements = b_.know_again(v)) return *elements;
    }
    if (v.type().type == element_type::boolean) return std::nullopt;
    return is_main(n_) ? as_symbols(v) : as_counts(v);
  }

 private:
  static constexpr int most_steps = 256;

  bool is_taken(const std::string& symbol) const {
    return std::ranges::any_of(state_.sizes_of_data, [&](const auto& each) { return each.symbol.str() == symbol; }) ||
           std::ranges::any_of(state_.result.main().parameters(), [&](value p) {
             return symbol.starts_with(
                 value_symbol(module::parameter_name(p), 0).str().substr(0, symbol.rfind('.') + 1));
           });
  }

  // All tensors with one name differ in a number after it.
  std::string free_name() const {
    std::string name = name_;
    for (int k = 2; is_taken(value_symbol(name, 0).str()); ++k) name = name_ + "_" + std::to_string(k);
    return name;
  }

  known_elements as_symbols(value v) {
    const std::string name = free_name();
    const value list = b_.with_dims(b_.to_type(v, element_type::i64), {v.type().element_count()});
    known_elements result;
    for (std::int64_t i = 0; i < v.type().element_count(); ++i) {
      const dim symbol = value_symbol(name, i);
      state_.known.facts.set_range(symbol.str(), least_value(state_, symbol), INT64_MAX);
      const value number = b_.slice_axis(list, 0, i, 1);
      state_.sizes_of_data.push_back({symbol, number});
      result.push_back(symbol);
    }
    b_.set_known(v, result);
    return result;
  }

  // The numbers are at most the largest of all trips, which is a size that data decide.
  std::optional<known_elements> as_counts(value v) {
    const auto bound = most_in_all_trips(n_, v);
    if (!bound) return std::nullopt;
    scope& outer = *scope_around_module(n_);
    node outside(outer, outer.build(), n_.proto, n_.opset, {});
    value room = outside.b.to_type(outside.b.with_dims(*bound, {1}), element_type::i64);
    const auto most = size_of_data(outside, outside.b.binary(fn::max, room, 0.0));
    if (!most) return std::nullopt;
    const value list = b_.with_dims(b_.to_type(v, element_type::i64), {v.type().element_count()});
    known_elements result;
    for (std::int64_t i = 0; i < v.type().element_count(); ++i) {
      const value number = b_.binary(fn::max, b_.slice_axis(list, 0, i, 1), 0.0);
      result.push_back(count_of(state_, b_, number, *most));
    }
    b_.set_known(v, result);
    return result;
  }

  const node& n_;
  import_state& state_;
  builder& b_;
  std::string name_;
  int depth_ = 0;
};

}  // namespace

bool may_decide_sizes(const node& n, value v) {
  const import_state& state = n.owner.state();
  return state.data_decides_sizes && is_small_list(v.type());
}

std::optional<known_elements> elements_of_data(const node& n, value v, const std::string& name) {
  if (!may_decide_sizes(n, v)) return std::nullopt;
  return knowing(n, name).know(v);
}

std::optional<dim> size_of_data(const node& n, value count) {
  if (!is_main(n)) return std::nullopt;
  const std::string name = n.proto.output_size() > 0 && !n.proto.output(0).empty() ? n.proto.output(0) : n.proto.name();
  const auto elements = elements_of_data(n, count, name);
  return elements ? std::optional(elements->at(0)) : std::nullopt;
}

void mark_sizes_of_data(import_state& state) {
  if (state.sizes_of_data.empty()) return;
  module& main = state.result.main();
  std::vector<value> outputs = main.outputs();
  const std::vector<std::string> names = main.output_names();
  // What decides a size must stay while the rest is erased.
  std::vector<value> kept = outputs;
  for (const auto& each : state.sizes_of_data) kept.push_back(each.number);
  main.set_outputs(kept, std::vector<std::string>(kept.size()));
  main.erase_dead();
  main.set_outputs(outputs, names);
  std::set<std::string> used = symbols_in(state.result);
  for (const bounded_dim& each : state.bounded)  // tensors get this room when their counts are settled
    if (!each.most.is_static()) used.merge(each.most.symbols());
  for (const dim_guard& g : state.known.guards)
    for (const dim& d : {g.a, g.b})
      if (!d.is_static()) used.merge(d.symbols());
  data_sizes mark;
  std::vector<value> inputs{outputs[0]};
  for (const auto& each : state.sizes_of_data)
    if (used.contains(each.symbol.str())) {
      mark.sizes.push_back(each.symbol);
      inputs.push_back(each.number);
    }
  if (mark.sizes.empty()) return;
  outputs[0] = main.add(mark, inputs);
  main.set_outputs(outputs, names);
}

}  // namespace kiln::onnx_import
