#include "aot/onnx/ops/body_module.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "aot/onnx/bounded_values.hpp"

namespace kiln::onnx_import {
namespace {

// Adds the counts on which sizes or known elements of the captured values depend, and gives the values their room.
void take_counts(node& n, captures& taken) {
  const import_state& state = n.owner.state();
  std::set<std::string> symbols;
  auto add = [&](const dim& d) {
    if (is_bounded(d)) symbols.merge(d.symbols());
  };
  for (std::size_t i = 0; i < taken.names.size(); ++i) {
    value& v = taken.values[i];
    std::ranges::for_each(taken.dims[i], add);
    if (const auto elements = n.b.known(v)) std::ranges::for_each(*elements, add);
    for (std::size_t axis = 0; axis < taken.dims[i].size(); ++axis)
      if (const dim& d = taken.dims[i][axis]; is_bounded(d))
        v = with_room(n, v, static_cast<std::int64_t>(axis), capacity_of(state, d));
  }
  for (const bounded_dim& each : state.bounded)
    if (symbols.contains(each.symbol.str())) {
      taken.counts.push_back(each.symbol);
      taken.values.push_back(each.count);
    }
}

}  // namespace

void capture(node& n, const ::onnx::GraphProto& body, captures& into) {
  into.values.resize(into.names.size());  // without the counts that an earlier call has added
  into.counts.clear();
  for (const auto& name : outer_names(body)) {
    value v = n.owner.find(name);
    const compound* c = v ? find_compound(n.owner.state(), v) : nullptr;
    const bool is_sequence = c && (c->stacked || c->joined);
    const std::optional<compound> sequence = is_sequence ? std::optional(*c) : std::nullopt;
    if (is_sequence) v = sequence->stacked ? sequence->stacked : sequence->joined;
    // Skip unknown names; the node that uses the name reports the error.
    if (!v || (module::constant(v) && !is_sequence) || std::ranges::find(into.names, name) != into.names.end())
      continue;
    into.names.push_back(name);
    into.dims.push_back(v.type().dims);
    into.values.push_back(v);
    into.sequences.push_back(sequence);
  }
  take_counts(n, into);
}

void body_module::capture(const captures& c) {
  std::vector<value> parameters;
  for (std::size_t i = 0; i < c.names.size(); ++i)
    parameters.push_back(made.add_parameter(std::string(outer_prefix) + c.names[i], c.values[i].type()));
  std::map<std::string, dim> counts;
  for (std::size_t i = 0; i < c.counts.size(); ++i) {
    const dim& outside = c.counts[i];
    const value number = made.add_parameter("count." + std::to_string(i), {element_type::i64, {1}});
    counts.emplace(outside.str(), count_of(inside.state(), b, number, capacity_of(inside.state(), outside)));
  }
  for (std::size_t i = 0; i < c.names.size(); ++i) {
    value p = parameters[i];
    for (std::size_t axis = 0; axis < c.dims[i].size(); ++axis)
      if (is_bounded(c.dims[i][axis]))
        p = b.slice_axis(p, static_cast<std::int64_t>(axis), 0, c.dims[i][axis].replace(counts));
    if (auto elements = outer.known(c.values[i])) {
      for (dim& d : *elements) d = d.replace(counts);
      b.set_known(p, *elements);
    }
    if (std::optional<compound> parts = c.sequences[i]) {
      (parts->stacked ? parts->stacked : parts->joined) = p;
      p = add_compound(inside.state(), b, *parts);
    }
    inside.define(c.names[i], p);
  }
}

value with_rank_of(builder& b, value v, const shape& wanted) {
  const auto is_single = [](const shape& type) {
    return std::ranges::all_of(type.dims, [](const dim& size) { return size == dim(1); });
  };
  const shape& type = v.type();
  const bool differs = type.type == wanted.type && type.rank() != wanted.rank() && is_single(type) && is_single(wanted);
  return differs ? b.with_dims(v, wanted.dims) : v;
}

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

}  // namespace kiln::onnx_import
