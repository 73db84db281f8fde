// Operators that read or write elements at indices.
#include <algorithm>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<value> gathered(node& n) {
  const std::int64_t axis = n.axis("axis", 0, n.rank(0));
  value indices = from_beginning(n.b, n.in(1), n.dims(0)[static_cast<std::size_t>(axis)]);
  value result = n.b.add(gather{axis}, {n.in(0), indices});
  know_last_sum(n, n.in(0), n.in(1), result);
  return {result};
}

std::vector<value> gathered_elements(node& n) {
  const std::int64_t axis = n.axis("axis", 0, n.rank(0));
  value indices = from_beginning(n.b, n.in(1), n.dims(0)[static_cast<std::size_t>(axis)]);
  return {n.b.add(gather_elements{axis}, {n.in(0), indices})};
}

// Converts index tuples [..., k] into the axes of `dims` from `first` on, so that negative indices count from the
// beginning.
value tuples_from_beginning(builder& b, value indices, const std::vector<dim>& dims, std::size_t first) {
  const dim width = indices.type().dims.empty() ? dim(0) : indices.type().dims.back();
  if (!width.is_static() || first + static_cast<std::size_t>(width.value()) > dims.size()) return indices;
  const std::vector<dim> sizes(dims.begin() + static_cast<std::ptrdiff_t>(first),
                               dims.begin() + static_cast<std::ptrdiff_t>(first) + width.value());
  if (std::ranges::none_of(sizes, is_bounded)) return indices;
  value from_end = b.binary(fn::add, indices, b.dims_tensor(sizes));
  return b.where(b.binary(fn::less, indices, 0.0), from_end, indices);
}

std::vector<value> gathered_nd(node& n) {
  const std::int64_t batch = n.integer("batch_dims", 0);
  if (batch < 0) invalid("batch_dims is negative");
  value indices = tuples_from_beginning(n.b, n.in(1), n.dims(0), static_cast<std::size_t>(batch));
  return {n.b.add(gather_nd{batch}, {n.in(0), indices})};
}

scatter_reduction reduction_of(node& n) {
  return enumerator_of<scatter_reduction>("reduction", n.text("reduction", "none"));
}

// Returns the data with one more element along the axis. Updates that are padding are written to this element.
value with_spare(node& n, value data, std::int64_t axis) {
  const dim size = data.type().dims.at(static_cast<std::size_t>(axis));
  if (is_bounded(size)) return with_room(n, data, axis, capacity_of(n.owner.state(), size) + dim(1));
  return n.b.pad_axis(data, axis, 0, 1, pad_mode::constant_, 0);
}

// A reduction of booleans is computed with bytes.
bool reduces_booleans(node& n, scatter_reduction reduction) {
  return reduction != scatter_reduction::none && n.type(0).type == element_type::boolean;
}

std::vector<value> scattered_elements(node& n) {
  builder& b = n.b;
  const scatter_elements op{n.axis("axis", 0, n.rank(0)), reduction_of(n)};
  const dim size = n.dims(0)[static_cast<std::size_t>(op.axis)];
  value data = n.in(0), indices = n.in(1), updates = n.in(2);
  if (reduces_booleans(n, op.reduction)) {
    value bytes = b.add(op, {b.to_type(data, element_type::u8), indices, b.to_type(updates, element_type::u8)});
    return {b.to_type(bytes, element_type::boolean)};
  }
  if (!has_bounded_dims(data.type()) && !has_bounded_dims(indices.type())) return {b.add(op, {data, indices, updates})};
  value spare = b.data_of(capacity_of(n.owner.state(), size)), end = b.dims_tensor({size}, 0);
  indices = b.to_type(indices, element_type::i64);
  indices = b.where(b.binary(fn::less, indices, 0.0), b.binary(fn::add, indices, end), indices);
  // Padding of the updates is 0, so that it need not be computed (evaluator_rules::skips_padding).
  if (has_bounded_dims(updates.type())) updates = masked(b, updates, b.scalar(updates.type().type, 0));
  value made = b.add(op, {with_spare(n, data, op.axis), masked(b, indices, spare), updates});
  allow_padding(n.owner.state(), made);
  return {b.slice_axis(made, op.axis, 0, size)};
}

// masked_scatter slices its updates to the number of elements that the mask selects. ONNX clamps the slice, so there
// may be fewer updates than indices. Such a run is invalid, so the two sizes are taken as equal.
value as_many(node& n, value updates, const shape& indices) {
  for (std::size_t axis = 0; axis + 1 < indices.rank() && axis < updates.type().rank(); ++axis) {
    const dim want = indices.dims.at(axis), have = updates.type().dims.at(axis);
    if (have == want || !is_bounded(want) || !n.b.facts().at_least(want, have)) continue;
    const auto at = static_cast<std::int64_t>(axis);
    updates = n.b.slice_axis(with_room(n, updates, at, capacity_of(n.owner.state(), want)), at, 0, want);
  }
  return updates;
}

std::vector<value> scattered_nd(node& n) {
  builder& b = n.b;
  const scatter_nd op{reduction_of(n)};
  value data = n.in(0), indices = n.in(1), updates = n.in(2);
  if (reduces_booleans(n, op.reduction)) {
    value bytes = b.add(op, {b.to_type(data, element_type::u8), indices, b.to_type(updates, element_type::u8)});
    return {b.to_type(bytes, element_type::boolean)};
  }
  if (!has_bounded_dims(data.type()) && !has_bounded_dims(indices.type())) return {b.add(op, {data, indices, updates})};
  const auto dims = n.dims(0);
  const dim width = indices.type().dims.empty() ? dim(0) : indices.type().dims.back();
  if (!width.is_static() || width.value() < 1 || static_cast<std::size_t>(width.value()) > dims.size())
    refuse("the last axis of indices " + indices.type().str() + " must be a number of axes of " + data.type().str());
  updates = as_many(n, updates, indices.type());
  // Redirect updates that are padding to the spare element of the first axis.
  std::vector<value> parts{b.dims_tensor({capacity_of(n.owner.state(), dims.at(0))})};
  if (width.value() > 1) parts.push_back(b.integers(std::vector<std::int64_t>(width.value() - 1, 0)));
  value spare = parts.size() == 1 ? parts[0] : b.add(concat{0}, parts);
  value ends = b.dims_tensor({dims.begin(), dims.begin() + width.value()});
  indices = b.where(b.binary(fn::less, indices, 0.0), b.binary(fn::add, indices, ends), indices);
  value made = b.add(op, {with_spare(n, data, 0), masked(b, indices, spare), updates});
  allow_padding(n.owner.state(), made);
  return {b.slice_axis(made, 0, 0, dims.at(0))};
}

std::vector<value> segment_sums(node& n) {
  if (!n.has_attribute("segments")) invalid("needs the attribute 'segments', the number of rows of its output");
  return {n.b.add(segment_sum{n.integer("segments", 0)}, {n.in(0), n.in(1)})};
}

// Whether element j of a pair comes before element i in the sorted order. NaN ranks above every number, and equal
// elements keep their order.
value comes_before(builder& b, value xj, value xi, value j, value i, bool largest) {
  value before = b.binary(largest ? fn::greater : fn::less, xj, xi), same = b.binary(fn::equal, xj, xi);
  if (is_float(xj.type().type)) {
    value nan_j = b.unary(fn::is_nan, xj), nan_i = b.unary(fn::is_nan, xi);
    value other = largest ? nan_i : nan_j;
    before = b.binary(fn::logical_or, before,
                      b.binary(fn::logical_and, largest ? nan_j : nan_i, b.unary(fn::logical_not, other)));
    same = b.binary(fn::logical_or, same, b.binary(fn::logical_and, nan_j, nan_i));
  }
  return b.binary(fn::logical_or, before, b.binary(fn::logical_and, same, b.binary(fn::less, j, i)));
}

// All elements along an axis of any size in sorted order, and their indices. The position of an element is the number
// of elements that come before it, so the work grows with the square of the size.
std::vector<value> sorted_by_rank(builder& b, value x, std::int64_t axis, bool largest) {
  auto dims = x.type().dims;
  const auto at = static_cast<std::size_t>(axis);
  const dim size = dims.at(at);
  auto pairs = dims, row = dims, column = dims;
  pairs.insert(pairs.begin() + axis, size);
  row.insert(row.begin() + axis, dim(1));
  column.insert(column.begin() + axis + 1, dim(1));
  auto all = [&](value v, const std::vector<dim>& shape) { return b.broadcast_to(b.with_dims(v, shape), pairs); };
  value before = comes_before(b, all(x, column), all(x, row), b.iota_like(element_type::i64, pairs, axis),
                              b.iota_like(element_type::i64, pairs, axis + 1), largest);
  value rank = b.reduced(reduction_kind::sum, b.to_type(before, element_type::i64), {axis}, false);
  value place = b.iota_like(element_type::i64, dims, axis);
  const scatter_elements write{axis, scatter_reduction::none};
  return {b.add(write, {x, rank, x}), b.add(write, {place, rank, place})};
}

// Returns the largest (or smallest) k elements along an axis. If k depends on sizes, computes as many as k can be at
// most and returns the first k of them.
std::vector<value> top(node& n) {
  builder& b = n.b;
  dim k;
  if (n.opset < 10) {
    k = n.integer("k", 0);
  } else {
    auto given = n.known(1, "k");
    if (given.size() != 1) invalid("k must have one element");
    k = given[0];
  }
  const std::int64_t axis = n.axis("axis", -1, n.rank(0));
  const auto at = static_cast<std::size_t>(axis);
  const bool largest = n.integer("largest", 1) != 0;
  constexpr std::int64_t most_chosen = 1 << 16;
  auto most = b.facts().upper(k);
  value x = n.in(0);
  const dim size = x.type().dims.at(at), room = capacity_of(n.owner.state(), size);
  if (!most || (!k.is_static() && *most > most_chosen)) {
    // Refuses the node with a message that names the dimension.
    if (has_bounded_dims(x.type())) n.numbers(1, "k");
    std::vector<value> sorted = sorted_by_rank(b, x, axis, largest);
    for (value& v : sorted) v = b.slice_axis(v, axis, 0, k);
    return sorted;
  }
  if (!k.is_static() && !b.facts().at_least(room, *most)) {
    value fill = b.constant(largest ? lowest(x.type().type) : highest(x.type().type));
    auto dims = x.type().dims;
    dims.at(at) = *most;
    x = joined(n, {x, b.broadcast_to(fill, dims)}, axis);
  }
  value first = b.add(top_k{*most, axis, largest}, {x});
  value order = builder::output(first, 1);
  return {b.slice_axis(first, axis, 0, k), b.slice_axis(order, axis, 0, k)};
}

template <bool Largest>
std::vector<value> arg(node& n) {
  return {n.b.add(arg_reduce{Largest, n.axis("axis", 0, n.rank(0)), n.integer("keepdims", 1) != 0,
                             n.integer("select_last_index", 0) != 0},
                  {n.in(0)})};
}

// Reverses the first sequence_lens[b] time steps of each batch entry: i becomes len - 1 - i if i < len.
std::vector<value> reverse_sequence(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  const auto dims = x.type().dims;
  auto time = n.axis("time_axis", 0, dims.size()), batch = n.axis("batch_axis", 1, dims.size());
  value lengths = b.broadcast_to(b.along_axis(b.to_type(n.in(1), element_type::i64), batch, dims.size()), dims);
  value index = b.iota_like(element_type::i64, dims, time);
  value turned = b.binary(fn::sub, b.binary(fn::sub, lengths, 1.0), index);
  return {b.add(gather_elements{time}, {x, b.where(b.binary(fn::less, index, lengths), turned, index)})};
}

// Writes an update into positions [start, start + length) of a cache; each batch entry has its own start. Written as a
// select (each position reads the update or keeps its element), which fuses with the producer and the consumers.
std::vector<value> tensor_scatter(node& n) {
  builder& b = n.b;
  value cache = n.in(0), update = n.in(1);
  const auto dims = cache.type().dims;
  auto axis = n.axis("axis", -2, dims.size());
  auto at = static_cast<std::size_t>(axis);
  std::string mode = one_of(n, "mode", "linear", {"linear", "circular"});
  if (axis == 0) invalid("axis 0 is the batch");
  if (update.type().rank() != dims.size())
    invalid("the update " + update.type().str() + " does not fit the cache " + cache.type().str());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != at)
      b.need_equal(dims.at(i), update.type().dims.at(i), "axis " + std::to_string(i) + " of cache and update");
  const dim length = update.type().dims.at(at);
  if (length.is_static() && dims.at(at).is_static() && length.value() > dims.at(at).value())
    invalid("the update " + update.type().str() + " is longer than the cache " + cache.type().str());
  if (length == dim(0)) return {cache};
  value place = b.along_axis(b.iota_like(element_type::i64, {dims.at(at)}, 0), axis, dims.size());
  if (n.has(2)) {
    if (n.rank(2) != 1) invalid("write_indices is " + n.type(2).str() + ", not one index for each batch entry");
    place = b.binary(fn::sub, place, b.along_axis(b.to_type(n.in(2), element_type::i64), 0, dims.size()));
  }
  if (mode == "circular") place = b.binary(fn::mod, place, b.dims_tensor({dims.at(at)}, 0));
  value written = b.binary(fn::logical_and, b.binary(fn::greater_equal, place, 0.0),
                           b.binary(fn::less, place, b.dims_tensor({length}, 0)));
  if (length != dim(1)) {
    value index = b.where(written, place, b.scalar(element_type::i64, 0));
    update = b.add(gather_elements{axis}, {update, b.broadcast_to(index, dims)});
  }
  // A choice is not defined on types that have no arithmetic. f32 holds their numbers exactly.
  const element_type type = cache.type().type;
  const bool stored_only = storage_bits(type) < 8 || type == element_type::f8e8m0;
  if (stored_only) update = b.to_type(update, element_type::f32), cache = b.to_type(cache, element_type::f32);
  return {b.to_type(b.where(written, update, cache), type)};
}

constexpr operator_row rows[] = {
    {"Gather", gathered, 1},
    {"GatherElements", gathered_elements, 11},
    {"GatherND", gathered_nd, 11},
    {"ScatterElements", scattered_elements, 11},
    {"Scatter", scattered_elements, 9},
    {"ScatterND", scattered_nd, 11},
    {"SegmentSum", segment_sums, 1, "ids ascend", "kiln"},
    {"TopK", top, 6, "k known at import, or a size"},
    {"ArgMax", arg<true>, 1},
    {"ArgMin", arg<false>, 1},
    {"TensorScatter", tensor_scatter, 24},
    {"ReverseSequence", reverse_sequence, 10},
};

}  // namespace

std::span<const operator_row> indexing_operators() { return rows; }

}  // namespace kiln::onnx_import
