// Operators on sequences and optionals. They only rearrange values, because the importer tracks the elements
// (sequences.hpp).
#include "aot/onnx/sequences.hpp"
#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/slices.hpp"
#include "aot/onnx/ops/stacked.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

// A sequence of any length.
const compound& any_sequence_in(node& n, std::size_t i) {
  const compound* c = find_compound(n.owner.state(), n.in(i));
  if (!c || c->is_optional) invalid("input " + std::to_string(i) + " is not a sequence");
  return *c;
}

// A sequence whose elements are known at import.
const compound& sequence_in(node& n, std::size_t i) {
  const compound& c = any_sequence_in(n, i);
  if (c.stacked || c.joined) throw value_needed("takes a sequence whose length is not known at import");
  return c;
}

value made(node& n, std::vector<value> elements) {
  return add_compound(n.owner.state(), n.b, {false, std::move(elements)});
}

std::vector<value> sequence_construct(node& n) { return {made(n, n.present())}; }
std::vector<value> sequence_empty(node& n) { return {made(n, {})}; }

// The parts of a sequence whose parts have one length but for the last; nullptr for other sequences.
const compound* even_parts(node& n) {
  const compound& parts = any_sequence_in(n, 0);
  return parts.joined && parts.length > 0 ? &parts : nullptr;
}

const dim& joined_size(const compound& parts) {
  return parts.joined.type().dims.at(static_cast<std::size_t>(parts.along));
}

std::vector<value> sequence_length(node& n) {
  if (value all = any_sequence_in(n, 0).stacked) return {n.b.dims_tensor({all.type().dims.at(0)}, 0)};
  if (const compound* parts = even_parts(n))
    return {n.b.dims_tensor({(joined_size(*parts) + dim(parts->length - 1)) / dim(parts->length)}, 0)};
  return {n.b.scalar(element_type::i64, static_cast<double>(sequence_in(n, 0).elements.size()))};
}

// Returns the position that input i gives. Must be in [0, end); a negative one counts from `length`.
std::size_t position(node& n, std::size_t i, std::size_t length, std::size_t end) {
  refuse_compound(n, i);
  auto given = n.numbers(i, "position");
  if (given.size() != 1) invalid("the position is not a scalar");
  const auto count = static_cast<std::int64_t>(length);
  const std::int64_t at = given[0] < 0 ? given[0] + count : given[0];
  if (at < 0 || at >= static_cast<std::int64_t>(end))
    invalid("position " + std::to_string(given[0]) + " is outside a sequence of " + std::to_string(length));
  return static_cast<std::size_t>(at);
}

std::vector<value> sequence_at(node& n) {
  if (value all = any_sequence_in(n, 0).stacked) {
    value at = from_beginning(n.b, n.b.to_type(n.b.with_dims(n.in(1), {}), element_type::i64), all.type().dims.at(0));
    return {n.b.add(gather{0}, {all, at})};
  }
  if (const compound* parts = even_parts(n)) {
    const dim start = n.known(1, "position").at(0) * dim(parts->length), rest = joined_size(*parts) - start;
    if (!n.b.facts().at_least(start, 0)) refuse("takes a part whose position may be negative: " + start.str());
    const dim size = n.b.facts().min(rest, parts->length);
    if (is_bounded(size) && !grows_with_counts(size))
      return {shortened_from(n, parts->joined, parts->along, start, size, 1)};
    return {n.b.slice_from(parts->joined, parts->along, start, size, 1)};
  }
  const auto& elements = sequence_in(n, 0).elements;
  const bool alike = !elements.empty() && std::ranges::all_of(elements, [&](value v) {
    return v.type() == elements[0].type() && !find_compound(n.owner.state(), v);
  });
  // If the position depends on data, gather from the stacked elements; they must have one shape.
  if (alike && !n.b.known(n.in(1))) {
    value at = n.b.to_type(n.b.with_dims(n.in(1), {}), element_type::i64);
    return {n.b.add(gather{0}, {stacked(n.b, elements, 0), at})};
  }
  return {elements.at(position(n, 1, elements.size(), elements.size()))};
}

std::vector<value> sequence_insert(node& n) {
  if (value all = any_sequence_in(n, 0).stacked; all && !n.has(2)) {
    value last = stacked(n.b, {n.in(1)}, 0);
    return {add_compound(n.owner.state(), n.b, {false, {}, appended(n, all, last)})};
  }
  auto elements = sequence_in(n, 0).elements;
  const std::size_t at = n.has(2) ? position(n, 2, elements.size(), elements.size() + 1) : elements.size();
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), n.in(1));
  return {made(n, std::move(elements))};
}

std::vector<value> sequence_erase(node& n) {
  auto elements = sequence_in(n, 0).elements;
  if (elements.empty()) invalid("the sequence is empty");
  const std::size_t at = n.has(1) ? position(n, 1, elements.size(), elements.size()) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return {made(n, std::move(elements))};
}

// Returns the parts of length 1 of an axis of open size: they have one shape. The axis is kept or dropped.
value single_parts(node& n, std::int64_t axis, bool keep) {
  std::vector<std::int64_t> order{axis};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(n.rank(0)); ++i)
    if (i != axis) order.push_back(i);
  value moved = n.b.permuted(n.in(0), order);
  auto dims = moved.type().dims;
  if (keep) dims.insert(dims.begin() + 1 + axis, 1);
  return n.b.with_dims(moved, dims);
}

// Returns the parts of an axis of any size, all of which have the length `each`, stacked along a new first axis.
value equal_parts(node& n, std::int64_t axis, const dim& count, const dim& each) {
  const auto at = static_cast<std::size_t>(axis);
  auto dims = n.dims(0);
  n.b.need_equal(dims.at(at), count * each, "the axis and the sum of the lengths of its parts");
  dims.at(at) = count;
  dims.insert(dims.begin() + axis + 1, each);
  std::vector<std::int64_t> order{axis};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(dims.size()); ++i)
    if (i != axis) order.push_back(i);
  return n.b.permuted(n.b.with_dims(n.in(0), dims), order);
}

// `split` holds one length for each part, or one length for all parts, of which the last may be shorter; the default
// is 1.
std::vector<value> split_to_sequence(node& n) {
  builder& b = n.b;
  const std::int64_t axis = n.axis("axis", 0, n.rank(0));
  auto dims = n.dims(0);
  if (n.has(1) && n.rank(1) == 1 && !n.dims(1)[0].is_static())
    if (const auto each = b.uniform(n.in(1)))
      return {add_compound(n.owner.state(), b, {false, {}, equal_parts(n, axis, n.dims(1)[0], *each)})};
  if (n.has(1) && n.rank(1) > 0) {
    const known_elements lengths = n.known(1, "split");
    const bool empty = std::ranges::all_of(lengths, [](const dim& length) { return length == dim(0); });
    if (empty) static_dim(dims.at(static_cast<std::size_t>(axis)), "an axis that is split into no elements");
    return {made(n, split_into(n, n.in(0), axis, lengths))};
  }
  const std::int64_t each = n.has(1) ? n.numbers(1, "split").at(0) : 1;
  if (each < 1) invalid("parts have the length " + std::to_string(each) + ", not a positive one");
  const bool keep = n.has(1) || n.integer("keepdims", 1) != 0;
  if (each == 1 && !dims.at(static_cast<std::size_t>(axis)).is_static())
    return {add_compound(n.owner.state(), b, {false, {}, single_parts(n, axis, keep)})};
  if (!dims.at(static_cast<std::size_t>(axis)).is_static())
    return {add_compound(n.owner.state(), b, {false, {}, {}, n.in(0), axis, each})};
  const std::int64_t total = static_dim(dims.at(static_cast<std::size_t>(axis)), "the split axis");
  constexpr std::int64_t most_parts = 1 << 16;
  if (total / each >= most_parts) refuse(std::to_string(total / each) + " parts are too many");
  std::vector<dim> lengths;
  for (std::int64_t at = 0; at < total; at += each) lengths.emplace_back(std::min(each, total - at));
  std::vector<value> parts = parts_of(b, n.in(0), axis, lengths);
  dims.erase(dims.begin() + axis);
  if (!keep)
    for (value& part : parts) part = b.with_dims(part, dims);
  return {made(n, std::move(parts))};
}

// Joins the elements of a stacked sequence along a new axis or along one of theirs.
value concat_stacked(node& n, value all) {
  builder& b = n.b;
  const bool fresh = n.integer("new_axis", 0) != 0;
  const std::size_t rank = all.type().rank();
  const std::int64_t axis = n.axis("axis", 0, fresh ? rank : rank - 1);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 1; i < static_cast<std::int64_t>(rank); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  value moved = b.permuted(all, order);
  if (fresh) return moved;
  auto dims = moved.type().dims;
  const auto at = dims.begin() + axis;
  *at = at[0] * at[1];
  dims.erase(at + 1);
  return b.with_dims(moved, dims);
}

std::vector<value> concat_from_sequence(node& n) {
  if (const compound& parts = any_sequence_in(n, 0); parts.joined) {
    if (n.integer("new_axis", 0) != 0 || n.axis("axis", 0, parts.joined.type().rank()) != parts.along)
      refuse("joins parts of different lengths along another axis than " + std::to_string(parts.along));
    return {parts.joined};
  }
  if (value all = any_sequence_in(n, 0).stacked) return {concat_stacked(n, all)};
  const auto elements = sequence_in(n, 0).elements;
  if (elements.empty()) invalid("the sequence is empty");
  for (value v : elements)
    if (find_compound(n.owner.state(), v)) invalid("an element of the sequence is not a tensor");
  const bool fresh = n.integer("new_axis", 0) != 0;
  const std::int64_t axis = n.axis("axis", 0, elements[0].type().rank() + (fresh ? 1 : 0));
  if (fresh) return {stacked(n.b, elements, axis)};
  return {elements.size() == 1 ? elements[0] : n.b.add(concat{axis}, elements)};
}

// Imports the body once per element of the first input. The other inputs are sequences of the same length, or tensors
// that are passed to every call.
std::vector<value> sequence_map(node& n) {
  const ::onnx::GraphProto& body = n.graph("body");
  import_state& state = n.owner.state();
  const std::size_t count = sequence_in(n, 0).elements.size();
  if (static_cast<std::size_t>(body.input_size()) != n.inputs()) invalid("its body has another number of inputs");
  std::vector<std::vector<value>> results(static_cast<std::size_t>(body.output_size()));
  for (std::size_t i = 0; i < count; ++i) {
    state.budget.take_copy(body.ByteSizeLong());
    ::onnx::GraphProto copy = body;
    scope inside(state, n.b, &n.owner);
    for (std::size_t k = 0; k < n.inputs(); ++k) {
      const compound* c = find_compound(state, n.in(k));
      if (c && c->elements.size() != count) invalid("its sequences have different lengths");
      inside.define(copy.input(static_cast<int>(k)).name(), c ? c->elements[i] : n.in(k));
    }
    inside.run(copy);
    auto outputs = inside.outputs(copy);
    for (std::size_t k = 0; k < outputs.size(); ++k) results[k].push_back(outputs[k]);
  }
  std::vector<value> sequences;
  for (auto& elements : results) sequences.push_back(made(n, std::move(elements)));
  return sequences;
}

std::vector<value> optional(node& n) {
  compound c{true, {}};
  if (n.has(0)) c.elements.push_back(n.in(0));
  return {add_compound(n.owner.state(), n.b, std::move(c))};
}

std::vector<value> optional_has_element(node& n) {
  const compound* c = n.has(0) ? find_compound(n.owner.state(), n.in(0)) : nullptr;
  const bool has = n.has(0) && !(c && c->is_optional && c->elements.empty());
  return {n.b.scalar(element_type::boolean, has)};
}

std::vector<value> optional_get_element(node& n) {
  const compound* c = find_compound(n.owner.state(), n.in(0));
  // From opset 18 on, a tensor or sequence is accepted as an optional that has a value.
  if (!c || !c->is_optional) return {n.in(0)};
  if (c->elements.empty()) invalid("the optional is empty");
  return {c->elements[0]};
}

constexpr operator_row rows[] = {
    {"SequenceConstruct", sequence_construct, 11, "", "", true},
    {"SequenceEmpty", sequence_empty, 11, "", "", true},
    {"SequenceLength", sequence_length, 11, "", "", true},
    {"SequenceAt", sequence_at, 11, "", "", true},
    {"SequenceInsert", sequence_insert, 11, "position known at import", "", true},
    {"SequenceErase", sequence_erase, 11, "position known at import", "", true},
    {"SplitToSequence", split_to_sequence, 11, "lengths known at import, or equal but for the last"},
    {"ConcatFromSequence", concat_from_sequence, 11, "", "", true},
    {"SequenceMap", sequence_map, 17, "", "", true},
    {"Optional", optional, 15, "", "", true},
    {"OptionalHasElement", optional_has_element, 15, "", "", true},
    {"OptionalGetElement", optional_get_element, 15, "", "", true},
};

}  // namespace

value stacked(builder& b, const std::vector<value>& elements, std::int64_t axis) {
  std::vector<value> lifted;
  for (value v : elements) {
    auto dims = v.type().dims;
    if (static_cast<std::size_t>(axis) > dims.size()) invalid("the elements of a sequence have different ranks");
    dims.insert(dims.begin() + axis, 1);
    lifted.push_back(b.with_dims(v, dims));
  }
  return lifted.size() == 1 ? lifted[0] : b.add(concat{axis}, lifted);
}

value stacked(node& n, const compound& sequence) {
  if (sequence.stacked) return sequence.stacked;
  for (value v : sequence.elements)
    if (find_compound(n.owner.state(), v) || v.type() != sequence.elements[0].type())
      refuse("a sequence grows in a loop, but its elements have different shapes");
  return stacked(n.b, sequence.elements, 0);
}

value appended(node& n, value first, value second) {
  const auto &a = first.type(), &b = second.type();
  const bool alike =
      a.type == b.type && a.rank() == b.rank() && std::equal(a.dims.begin() + 1, a.dims.end(), b.dims.begin() + 1);
  if (!alike)
    refuse("a sequence whose length is not known at import has elements of different shapes: " + a.str() + " and " +
           b.str());
  return joined(n, {first, second}, 0);
}

std::span<const operator_row> sequence_operators() { return rows; }

}  // namespace kiln::onnx_import
