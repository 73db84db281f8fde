#include "aot/onnx/ops/growing_loop.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/ops/collected_sequences.hpp"
#include "aot/onnx/ops/loop_condition.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

class growing {
 public:
  growing(node& n, ::onnx::GraphProto graph, const loop_parts& parts)
      : n_(n), b_(n.b), state_(n.owner.state()), graph_(std::move(graph)), parts_(parts) {
    for (std::size_t i = 0; i < parts.carried; ++i) initial_.push_back(n.type(i + 2)), given_.push_back(n.in(i + 2));
    auto known = b_.known(parts.trips);
    if (!known) throw value_needed("its values grow or are collected, so its trip count must be known before it runs");
    const std::optional<dim> most = read_condition();
    if (known->front() == dim(INT64_MAX) && !most)
      throw value_needed("its values grow or are collected, and nothing that is known limits its trips");
    counted_ = is_bounded(known->front());
    trips_ = capacity_of(state_, b_.facts().max(known->front(), 0));
    if (most) trips_ = known->front() == dim(INT64_MAX) ? *most : b_.facts().min(trips_, *most);
  }

  std::vector<value> run() {
    measure();
    captures outer;
    capture(n_, graph_, outer);
    body_module body(n_, "body");
    std::vector<value> arguments{parts_.trips, parts_.condition};
    value trip = body.made.add_parameter(graph_.input(0).name(), {element_type::i64, {}});
    value place = body.b.with_dims(trip, {1});
    const dim passed = number_of_trips(body, trip, place);
    body.inside.define(graph_.input(0).name(), trip);
    body.parameter(graph_.input(1).name(), {element_type::boolean, {}});
    std::vector<value> buffers;
    for (std::size_t i = 0; i < parts_.carried; ++i) {
      arguments.push_back(with_all_trips(given_[i], growth_[i]));
      buffers.push_back(body.made.add_parameter(graph_.input(static_cast<int>(i) + 2).name(), arguments.back().type()));
    }
    // Parameters of the body that hold the collected values.
    std::vector<value> collected;
    for (const shape& each : scanned_) {
      std::vector<dim> dims = each.dims;
      dims.insert(dims.begin(), trips_);
      arguments.push_back(b_.broadcast_to(b_.scalar(each.type, 0), dims));
      collected.push_back(body.made.add_parameter("collected." + std::to_string(collected.size()), {each.type, dims}));
    }
    arguments.push_back(b_.integers({0}));
    value done = body.made.add_parameter("trips.done", {element_type::i64, {1}});
    for (std::size_t k = 0; k < uneven_.size(); ++k) {
      arguments.push_back(b_.dims_tensor({initial_[uneven_[k].carried].dims.at(uneven_[k].axis)}));
      uneven_[k].filled = body.made.add_parameter("filled." + std::to_string(k), {element_type::i64, {1}});
    }
    for (std::size_t i = 0; i < parts_.carried; ++i) define(body, i, buffers[i], passed);
    body.capture(outer);
    arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());

    ::onnx::GraphProto copy = graph_;
    body.inside.run(copy);
    std::vector<value> outputs = outputs_of(body, copy);
    const bool stops = counted_ || !never_stops(body, outputs[0]);
    node inside(body.inside, body.b, n_.proto, n_.opset, {});
    for (std::size_t i = 0; i < parts_.carried; ++i)
      outputs[i + 1] = grown(inside, outputs[i + 1], i, passed, arguments[i + 2].type());
    for (std::size_t i = 0; i < scanned_.size(); ++i) {
      value& each = outputs[parts_.carried + 1 + i];
      if (each.type() != scanned_[i])
        refuse("collected value " + std::to_string(i) + " changes its shape from " + scanned_[i].str() + " to " +
               each.type().str());
      const auto rank = collected[i].type().rank();
      auto dims = each.type().dims;
      dims.insert(dims.begin(), 1);
      value here = body.b.along_axis(body.b.iota_like(element_type::i64, {trips_}, 0), 0, rank);
      each = body.b.where(body.b.binary(fn::equal, here, trip), body.b.with_dims(each, dims), collected[i]);
    }
    outputs.push_back(body.b.binary(fn::add, done, 1.0));
    for (const uneven_growth& each : uneven_) outputs.push_back(each.filled);
    auto names = numbered(outputs.size());
    const std::size_t results = outputs.size() - 1;
    body.made.set_outputs(std::move(outputs), std::move(names));
    const loop op{static_cast<std::int64_t>(results), -1};
    return finished(all_outputs(b_.add(op, arguments, {&body.made}), results), stops);
  }

 private:
  // A carried value that grows along an axis by different sizes.
  struct uneven_growth {
    std::size_t carried = 0, axis = 0;
    dim symbol = 0;     // of the size in the body
    value filled = {};  // the size, i64[1]: at the start of a trip, then at its end
  };

  uneven_growth* uneven(std::size_t carried, std::size_t axis) {
    const auto found =
        std::ranges::find_if(uneven_, [&](const auto& each) { return each.carried == carried && each.axis == axis; });
    return found == uneven_.end() ? nullptr : &*found;
  }

  // Defines what the body sees of a carried value: the part of its buffer that is filled.
  void define(body_module& body, std::size_t i, value buffer, const dim& passed) {
    for (std::size_t axis = 0; axis < initial_[i].rank(); ++axis) {
      const dim& each = growth_[i][axis];
      if (each == dim(0)) continue;
      dim size = initial_[i].dims.at(axis) + passed * each;
      if (uneven_growth* part = uneven(i, axis))
        size = part->symbol = count_of(state_, body.b, part->filled, buffer.type().dims.at(axis));
      buffer = body.b.slice_axis(buffer, static_cast<std::int64_t>(axis), 0, size);
    }
    if (auto found = inductions_.find(i); found != inductions_.end())
      body.b.set_known(buffer, {found->second.at(passed)});
    body.inside.define(graph_.input(static_cast<int>(i) + 2).name(), buffer);
  }

  // Imports the body into a module that nothing calls. `known`: the carried values that are known, by their position.
  std::vector<value> try_trip(body_module& trial, const dim& trip, const std::map<std::size_t, dim>& known) {
    ::onnx::GraphProto copy = graph_;
    state_.budget.take_copy(2 * copy.ByteSizeLong());
    captures outer;
    capture(n_, graph_, outer);
    auto parameter = [&](int input, const shape& type, std::optional<dim> number) {
      value made = trial.made.add_parameter(copy.input(input).name(), type);
      trial.inside.define(copy.input(input).name(), made);
      if (!number) return;
      // What the parameter is computed from may be written with symbols, which need values in this module, too.
      trial.b.set_known(made, {*number});
      if (number->is_symbol())
        trial.b.set_count(*number, trial.b.with_dims(trial.b.to_type(made, element_type::i64), {1}));
    };
    parameter(0, {element_type::i64, {}}, trip);
    parameter(1, {element_type::boolean, {}}, std::nullopt);
    for (std::size_t i = 0; i < parts_.carried; ++i) {
      const auto found = known.find(i);
      parameter(static_cast<int>(i) + 2, initial_[i],
                found == known.end() ? std::nullopt : std::optional(found->second));
    }
    trial.capture(outer);
    // What the trial assumes about its sizes is assumed again by the import that stays.
    const std::vector<dim_guard> guards = state_.known.guards;
    trial.inside.run(copy);
    state_.known.guards = guards;
    return outputs_of(trial, copy);
  }

  std::vector<value> outputs_of(body_module& body, const ::onnx::GraphProto& graph) const {
    std::vector<value> outputs = body.inside.outputs(graph);
    outputs[0] = body.b.with_dims(outputs[0], {});
    for (std::size_t i = 0; i < parts_.carried; ++i) outputs[i + 1] = with_rank_of(body.b, outputs[i + 1], initial_[i]);
    return outputs;
  }

  dim trial_symbol(const std::string& name, const dim& most) {
    const dim symbol = dim::symbol("trial" + std::to_string(state_.bodies) + "." + name);
    state_.known.facts.set_range(symbol.str(), 0, most);
    return symbol;
  }

  // Finds the carried integers that grow by a constant, and returns the number of trips that the condition allows.
  std::optional<dim> read_condition() {
    const loop_condition condition = loop_condition::read(n_, graph_);
    for (const auto& [i, each] : condition.inductions)
      if (each.step >= 0 && b_.facts().at_least(each.start, 0)) inductions_.emplace(i, each);
    std::optional<dim> most;
    for (const countdown& each : condition.countdowns) {
      const dim trips = each.trips(b_.facts(), 1);
      most = most ? b_.facts().min(*most, trips) : trips;
    }
    return most;
  }

  std::map<std::size_t, dim> at_trip(const dim& trip) const {
    std::map<std::size_t, dim> known;
    for (const auto& [i, each] : inductions_) known.emplace(i, each.at(trip));
    return known;
  }

  bool reads(const std::string& name) const {
    return std::ranges::any_of(graph_.node(),
                               [&](const auto& each) { return std::ranges::count(each.input(), name); }) ||
           std::ranges::count(outer_names(graph_), name) > 0;
  }

  // Imports a trip to find the growth of each carried value and the shapes of the collected values.
  void measure() {
    body_module trial(n_, "trial");
    trip_ = trial_symbol("trip", last_trip());
    const std::vector<value> outputs = try_trip(trial, trip_, at_trip(trip_));
    for (std::size_t i = 0; i < parts_.carried; ++i) {
      const shape& type = outputs[i + 1].type();
      if (type != initial_[i] && makes_a_trip() && !reads(graph_.input(static_cast<int>(i) + 2).name()))
        replace(i, type);
      if (type.type != initial_[i].type || type.rank() != initial_[i].rank()) refuse_growth(i, type);
      growth_.emplace_back();
      for (std::size_t axis = 0; axis < type.rank(); ++axis) {
        dim each = type.dims.at(axis) - initial_[i].dims.at(axis);
        if (!b_.facts().at_least(each, 0)) refuse_growth(i, type);
        if (is_uneven(each)) each = largest_of(each), uneven_.push_back({i, axis});
        growth_.back().push_back(each);
      }
    }
    for (std::size_t i = parts_.carried + 1; i < outputs.size(); ++i) scanned_.push_back(outputs[i].type());
    order_.resize(parts_.outputs - 1);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto parts = static_cast<std::size_t>(n_.integer(collected_sequences::parts_attribute, 0));
    for (std::size_t i = scanned_.size(); i-- > scanned_.size() - parts;)
      if (const auto axis = uneven_axis(scanned_[i])) carry(i, *axis);
  }

  // Whether the size differs from trip to trip.
  bool is_uneven(const dim& d) const { return !d.is_static() && (is_bounded(d) || d.symbols().contains(trip_.str())); }

  std::optional<std::size_t> uneven_axis(const shape& type) const {
    const auto found = std::ranges::find_if(type.dims, [&](const dim& d) { return is_uneven(d); });
    return found == type.dims.end() ? std::nullopt : std::optional<std::size_t>(found - type.dims.begin());
  }

  // The largest size of those of all trips.
  dim largest_of(const dim& each) const {
    std::map<std::string, dim> most{{trip_.str(), last_trip()}};
    for (const bounded_dim& count : state_.bounded) most.emplace(count.symbol.str(), count.most);
    const auto found = largest(b_.facts(), each, most);
    if (!found) refuse("what it appends has sizes without a bound: " + each.str());
    return *found;
  }

  // Makes parts of a sequence that have different sizes along an axis a carried value to which they are appended.
  void carry(std::size_t scan, std::size_t axis) {
    append_part(graph_, parts_.carried, scan, axis);
    // The result of this scan now stands behind those of the carried values.
    const std::size_t from = parts_.carried + scan;
    for (std::size_t& at : order_) at = at == from ? parts_.carried : at >= parts_.carried && at < from ? at + 1 : at;
    shape type = scanned_[scan];
    scanned_.erase(scanned_.begin() + static_cast<std::ptrdiff_t>(scan));
    std::vector<dim> growth(type.rank(), 0);
    growth[axis] = largest_of(type.dims[axis]);
    type.dims[axis] = 0;
    if (uneven_axis(type)) refuse("appends parts of different sizes along more than one axis to a sequence");
    uneven_.push_back({parts_.carried, axis});
    joined_.emplace(parts_.carried++, axis);
    given_.push_back(b_.broadcast_to(b_.scalar(type.type, 0), type.dims));
    initial_.push_back(std::move(type));
    growth_.push_back(std::move(growth));
  }

  bool makes_a_trip() const {
    const auto goes = b_.constant_of(parts_.condition);
    return goes && goes->at_int(0) != 0 && b_.facts().at_least(b_.known(parts_.trips)->front(), 1);
  }

  // No trip reads what the loop is given for this carried value, so its shape does not matter.
  void replace(std::size_t i, const shape& type) {
    initial_[i] = type;
    given_[i] = b_.broadcast_to(b_.scalar(type.type, 0), type.dims);
  }

  [[noreturn]] void refuse_growth(std::size_t i, const shape& type) const {
    refuse("carried value " + std::to_string(i) + " changes its shape from " + initial_[i].str() + " to " + type.str());
  }

  // The index of the last trip; 0 if there is none, because then the body has sizes, too.
  dim last_trip() const { return b_.facts().max(trips_ - dim(1), 0); }

  // Creates a symbol for the index of the trip, so that sizes in the body can be expressed with it.
  dim number_of_trips(body_module& body, value trip, value place) {
    const dim symbol = count_of(state_, body.b, place, last_trip());
    body.b.set_known(trip, {symbol});
    return symbol;
  }

  value with_all_trips(value v, const std::vector<dim>& growth) {
    for (std::size_t axis = 0; axis < growth.size(); ++axis)
      if (!(growth[axis] == dim(0)))
        v = with_room(n_, v, static_cast<std::int64_t>(axis), v.type().dims.at(axis) + trips_ * growth[axis]);
    return v;
  }

  // Returns the value that the body passes on for a carried value, padded to the size of its buffer.
  value grown(node& inside, value v, std::size_t i, const dim& passed, const shape& buffer) {
    for (std::size_t axis = 0; axis < v.type().rank(); ++axis) {
      const dim size = v.type().dims.at(axis),
                wanted = initial_[i].dims.at(axis) + (passed + dim(1)) * growth_[i][axis];
      uneven_growth* part = uneven(i, axis);
      if (part) part->filled = inside.b.dims_tensor({size});
      const dim grows = part ? size - part->symbol : 0;
      if (part ? !grows.is_static() && grows.symbols().contains(part->symbol.str()) : !(size == wanted))
        refuse("carried value " + std::to_string(i) + " does not grow by the same size in each trip: " + size.str() +
               " is not " + wanted.str());
      v = with_room(inside, v, static_cast<std::int64_t>(axis), buffer.dims.at(axis));
    }
    return v;
  }

  // Truncates the buffers to the number of trips that were executed.
  std::vector<value> finished(std::vector<value> results, bool stops) {
    for (std::size_t k = uneven_.size(); k-- > 0; results.pop_back()) uneven_[k].filled = results.back();
    value done = results.back();
    results.pop_back();
    for (const uneven_growth& part : uneven_)
      results[part.carried] = shortened(n_, results[part.carried], static_cast<std::int64_t>(part.axis), part.filled);
    const auto condition = b_.constant_of(parts_.condition);
    if (stops || !condition || condition->at_int(0) == 0) cut(results, done);
    for (const auto& [i, axis] : joined_)
      results[i] = add_compound(state_, b_, {.joined = results[i], .along = static_cast<std::int64_t>(axis)});
    std::vector<value> ordered;
    for (std::size_t at : order_) ordered.push_back(results[at]);
    return ordered;
  }

  // Cuts what grows evenly, and what is collected, to the number of trips.
  void cut(std::vector<value>& results, value done) {
    // Keyed by the expression of the size: tensors that grow alike share a count.
    std::map<std::string, value> counts;
    auto shorten = [&](value& v, std::size_t axis, const dim& start, const dim& each) {
      auto [found, fresh] = counts.try_emplace(start.str() + "+" + each.str());
      if (fresh)
        found->second = b_.binary(fn::add, b_.dims_tensor({start}), b_.binary(fn::mul, done, b_.dims_tensor({each})));
      v = shortened(n_, v, static_cast<std::int64_t>(axis), found->second);
    };
    for (std::size_t i = 0; i < parts_.carried; ++i)
      for (std::size_t axis = 0; axis < growth_[i].size(); ++axis)
        if (!(growth_[i][axis] == dim(0)) && !uneven(i, axis))
          shorten(results[i], axis, initial_[i].dims.at(axis), growth_[i][axis]);
    for (std::size_t i = parts_.carried; i < results.size(); ++i) shorten(results[i], 0, 0, 1);
  }

  node& n_;
  builder& b_;
  import_state& state_;
  ::onnx::GraphProto graph_;
  loop_parts parts_;
  // Upper bound on the number of trips.
  dim trips_;
  bool counted_ = false;  // whether the number of trips depends on data
  std::vector<shape> initial_, scanned_;
  std::vector<value> given_;  // what the loop is given for the carried values
  std::map<std::size_t, induction> inductions_;
  // Elements added per trip, by carried value and axis; the most of them where trips add different numbers.
  std::vector<std::vector<dim>> growth_;
  std::vector<uneven_growth> uneven_;
  // Carried values that hold the parts of a sequence, and the axis along which they are joined.
  std::map<std::size_t, std::size_t> joined_;
  std::vector<std::size_t> order_;  // for each result of the Loop, its place among the results of the import
  dim trip_ = 0;                    // the index of the trip in the trial
};

}  // namespace

bool never_stops(const body_module& body, value condition) {
  if (auto constant = body.b.constant_of(condition)) return constant->at_int(0) != 0;
  return condition == body.made.parameters()[1];
}

std::vector<value> growing_loop(node& n, const ::onnx::GraphProto& graph, const loop_parts& parts) {
  return growing(n, graph, parts).run();
}

}  // namespace kiln::onnx_import
