#include "aot/onnx/bounded_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "aot/onnx/bounded_dims.hpp"
#include "aot/onnx/sizes_of_data.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns the smallest or largest value of an integer type as a scalar. A double cannot represent the extremes of
// 64-bit types.
literal extreme(element_type type, bool high) {
  if (is_float(type))
    return literal::scalar(type,
                           high ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  if (type == element_type::i64)
    return literal::of<std::int64_t>(
        {type, {}}, {high ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min()});
  if (type == element_type::u64)
    return literal::of<std::uint64_t>({type, {}}, {high ? std::numeric_limits<std::uint64_t>::max() : 0});
  const double all = std::ldexp(1.0, storage_bits(type));
  if (is_signed_integer(type)) return literal::scalar(type, high ? all / 2 - 1 : -all / 2);
  return literal::scalar(type, high ? all - 1 : 0);
}

value places_of(builder& b, const std::vector<dim>& dims, std::int64_t axis) {
  return b.iota_like(element_type::i64, dims, axis);
}

}  // namespace

bool is_bounded(const dim& d) {
  return !d.is_static() &&
         std::ranges::any_of(d.symbols(), [](const std::string& s) { return s.starts_with(count_prefix); });
}

bool has_bounded_dims(const shape& type) { return std::ranges::any_of(type.dims, is_bounded); }

dim capacity_of(const import_state& state, const dim& d) {
  if (!is_bounded(d)) return d;
  std::map<std::string, dim> most;
  for (const bounded_dim& each : state.bounded) most.emplace(each.symbol.str(), each.most);
  return d.replace(most);
}

shape capacity_of(const import_state& state, const shape& type) {
  shape result = type;
  for (dim& d : result.dims) d = capacity_of(state, d);
  return result;
}

bool grows_with_counts(const dim& d) {
  return std::ranges::all_of(d.terms(), [](const auto& term) {
    const auto& [atoms, coefficient] = term;
    const bool counts = std::ranges::any_of(atoms, [](const auto& atom) { return is_bounded(dim::from(atom)); });
    return !counts || (coefficient > 0 && std::ranges::all_of(atoms, [](const auto& atom) {
                         if (atom->is == dim_atom::kind::real) return false;
                         if (atom->is == dim_atom::kind::quotient)
                           return grows_with_counts(atom->operands[0]) && !is_bounded(atom->operands[1]);
                         return std::ranges::all_of(atom->operands, grows_with_counts);
                       }));
  });
}

std::optional<dim> largest(const dim_facts& facts, dim d, const std::map<std::string, dim>& most) {
  const bool grows = grows_with_counts(d);
  for (const std::string& symbol : std::set<std::string>(d.symbols())) {
    const auto found = most.find(symbol);
    if (found == most.end()) continue;
    const dim at_most = d.replace({{symbol, found->second}}), at_none = d.replace({{symbol, 0}});
    const bool counts = grows && is_bounded(dim::symbol(symbol));
    if (counts || facts.at_least(at_most, d)) d = at_most;
    else if (facts.at_least(at_none, d)) d = at_none;
    else return std::nullopt;
  }
  return d;
}

dim count_of(import_state& state, builder& b, value number, const dim& most, std::int64_t least) {
  const dim symbol = dim::symbol(std::string(count_prefix) + std::to_string(state.bounded.size()));
  b.set_count(symbol, number);
  state.known.facts.set_range(symbol.str(), least, most);
  state.bounded.push_back({symbol, number, most});
  return symbol;
}

value shortened(node& n, value data, std::int64_t axis, value count, std::int64_t least) {
  import_state& state = n.owner.state();
  if (const auto size = size_of_data(n, count)) return n.b.slice_axis(data, axis, 0, *size);
  auto known = std::ranges::find(state.bounded, count, &bounded_dim::count);
  if (known == state.bounded.end()) {
    count_of(state, n.b, count, capacity_of(state, data.type().dims[static_cast<std::size_t>(axis)]), least);
    known = state.bounded.end() - 1;
  }
  return n.b.slice_axis(data, axis, 0, known->symbol);
}

value shortened_from(node& n, value data, std::int64_t axis, const dim& start, const dim& length, std::int64_t step) {
  builder& b = n.b;
  import_state& state = n.owner.state();
  std::map<std::string, dim> most;
  for (const bounded_dim& each : state.bounded) most.emplace(each.symbol.str(), each.most);
  const auto room = largest(b.facts(), length, most);
  if (!room) refuse("the size '" + length.str() + "' depends on data in a way that has no bound");
  const dim size = capacity_of(state, data.type().dims.at(static_cast<std::size_t>(axis)));
  value places = b.binary(fn::mul, places_of(b, {*room}, 0), static_cast<double>(step));
  places = b.binary(fn::add, places, b.data_of(start));
  const value last = b.binary(fn::sub, b.data_of(size), 1.0);
  places = b.binary(fn::max, b.binary(fn::min, places, last), 0.0);
  const value made = b.add(gather{axis}, {data, places});
  allow_padding(state, made);
  return shortened(n, made, axis, b.dims_tensor({length}));
}

value masked(builder& b, value data, std::int64_t axis, value fill) {
  const auto dims = data.type().dims;
  const dim size = dims[static_cast<std::size_t>(axis)];
  if (!is_bounded(size)) return data;
  value valid = b.binary(fn::less, places_of(b, dims, axis), b.dims_tensor({size}, 0));
  return b.where(valid, data, fill);
}

value masked(builder& b, value data, value fill) {
  for (std::size_t axis = 0; axis < data.type().rank(); ++axis)
    data = masked(b, data, static_cast<std::int64_t>(axis), fill);
  return data;
}

value from_beginning(builder& b, value indices, const dim& size) {
  if (!is_bounded(size)) return indices;
  if (auto known = b.constant_of(indices); known && known->type().element_count() > 0) {
    const auto numbers = known->to_int64();
    if (std::ranges::min(numbers) >= 0) return indices;
  }
  indices = b.to_type(indices, element_type::i64);
  value from_end = b.binary(fn::add, indices, b.dims_tensor({size}, 0));
  return b.where(b.binary(fn::less, indices, 0.0), from_end, indices);
}

value joined(node& n, const std::vector<value>& parts, std::int64_t axis) {
  builder& b = n.b;
  import_state& state = n.owner.state();
  const auto at = static_cast<std::size_t>(axis);
  value together = b.add(concat{axis}, parts);
  const dim total = together.type().dims[at];
  // If only the last part is bounded, padding is already at the end and no elements have to move.
  const bool gaps = std::any_of(parts.begin(), parts.end() - 1, [&](value v) { return is_bounded(v.type().dims[at]); });
  if (!gaps) {
    if (is_bounded(total)) allow_padding(state, together);
    return together;
  }
  allow_padding(state, together);
  // Element i of the result comes from element i of `together`, shifted by the padding of all parts that end at or
  // before i.
  value place = places_of(b, {total}, 0), source = place;
  dim end = 0;
  for (std::size_t k = 0; k + 1 < parts.size(); ++k) {
    const dim size = parts[k].type().dims[at];
    end = end + size;
    if (!is_bounded(size)) continue;
    value padding = b.binary(fn::sub, b.data_of(capacity_of(state, size)), b.dims_tensor({size}, 0));
    value past = b.binary(fn::greater_equal, place, b.dims_tensor({end}, 0));
    source = b.binary(fn::add, source, b.where(past, padding, b.scalar(element_type::i64, 0)));
  }
  value last = b.binary(fn::sub, b.data_of(capacity_of(state, total)), 1.0);
  return b.add(gather{axis}, {together, b.binary(fn::min, source, last)});
}

value with_room(node& n, value data, std::int64_t axis, const dim& length) {
  builder& b = n.b;
  const auto at = static_cast<std::size_t>(axis);
  const dim room = capacity_of(n.owner.state(), data.type().dims[at]);
  if (data.type().dims[at] == length) return data;
  if (room == dim(0)) {
    auto dims = data.type().dims;
    dims[at] = length;
    return b.broadcast_to(b.scalar(data.type().type, 0), dims);
  }
  // Nothing can be taken from an empty axis.
  if (const dim& size = data.type().dims[at];
      !is_bounded(size) && !b.facts().at_least(size, 1) && b.facts().at_least(length, size)) {
    auto rest = data.type().dims;
    rest[at] = length - size;
    return b.add(concat{axis}, {data, b.broadcast_to(b.scalar(data.type().type, 0), rest)});
  }
  value last = b.binary(fn::max, b.binary(fn::sub, b.data_of(room), 1.0), 0.0);
  value made = b.add(gather{axis}, {data, b.binary(fn::min, places_of(b, {length}, 0), last)});
  allow_padding(n.owner.state(), made);
  return made;
}

void allow_padding(import_state& state, value made) { state.padding_allowed.insert(made.producer); }

literal lowest(element_type type) { return extreme(type, false); }
literal highest(element_type type) { return extreme(type, true); }

}  // namespace kiln::onnx_import
