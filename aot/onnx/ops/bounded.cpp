// Operators whose result size depends on data. Kernels of our library return the largest result and a count
// (bounded_dims.hpp). If the data is known at import, the size is exact.
#include <algorithm>
#include <array>
#include <limits>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/custom.hpp"
#include "aot/onnx/operators.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<std::int64_t> non_zero_places(const literal& x) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < x.type().element_count(); ++i)
    if (x.at(i) != 0) places.push_back(i);
  return places;
}

struct counted_places {
  // `places`: flat indices i64[n], 0 past the count. `count`: i64[1].
  value places, count;
};

// The result is shared by all uses of `x`, so that their results have the same size.
counted_places find_non_zero(node& n, value x) {
  auto& known = n.owner.state().non_zero;
  if (auto seen = known.find(x); seen != known.end()) return {seen->second[0], seen->second[1]};
  constexpr std::array direct{element_type::f32, element_type::i32, element_type::i64, element_type::boolean};
  bool as_is = std::ranges::find(direct, x.type().type) != direct.end();
  value valid = masked(n.b, x, n.b.scalar(x.type().type, 0));
  auto found = import_kernel(n, "NonZero", {as_is ? valid : n.b.to_type(valid, element_type::boolean)});
  allow_padding(n.owner.state(), found[0]);
  value places = n.b.binary(fn::max, found[0], 0.0);
  known[x] = {places, found[1]};
  return {places, found[1]};
}

// Returns the indices of nonzero elements, [rank, count].
std::vector<value> non_zero(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  const auto rank = static_cast<std::int64_t>(n.rank(0));
  auto data = b.constant_of(x);
  if (auto each = b.uniform(x);
      // All elements are nonzero: return every index, in order.
      each && rank > 0 && b.facts().order(*each, 0).value_or(0) != 0) {
    const dim count = n.type(0).elements();
    std::vector<value> every;
    for (std::int64_t axis = 0; axis < rank; ++axis)
      every.push_back(b.with_dims(b.iota_like(element_type::i64, n.dims(0), axis), {1, count}));
    return {every.size() == 1 ? every[0] : b.add(concat{0}, every)};
  }
  if (n.type(0).is_static() && (data || n.type(0).element_count() == 0)) {
    const auto dims = n.type(0).static_dims(), strides = row_major_strides(dims);
    auto hits = data ? non_zero_places(*data) : std::vector<std::int64_t>{};
    std::vector<std::int64_t> indices;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      for (auto i : hits) indices.push_back(i / strides[axis] % dims.at(axis));
    return {b.constant(
        literal::of<std::int64_t>({element_type::i64, {rank, static_cast<std::int64_t>(hits.size())}}, indices))};
  }
  if (rank == 0) refuse("an input of rank 0 whose value is not known at import");
  auto [places, count] = find_non_zero(n, x);
  const dim most = places.type().dims.at(0);
  std::vector<value> rows;
  // Places count elements of the largest shape.
  const auto dims = capacity_of(n.owner.state(), n.type(0)).dims;
  dim stride = 1;
  for (std::size_t axis = dims.size(); axis-- > 0; stride = stride * dims.at(axis)) {
    value index = stride == dim(1) ? places : b.binary(fn::div, places, b.data_of(stride));
    if (axis > 0) index = b.binary(fn::mod, index, b.data_of(dims.at(axis)));
    rows.insert(rows.begin(), b.with_dims(index, {1, most}));
  }
  return {shortened(n, rows.size() == 1 ? rows[0] : b.add(concat{0}, rows), 1, count)};
}

// Selects elements along the axis (or of the flattened tensor without an axis) where the condition holds.
std::vector<value> compress(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  std::int64_t axis = 0;
  if (n.has_attribute("axis")) axis = n.axis("axis", 0, x.type().rank());
  else x = b.with_dims(x, {x.type().elements()});
  value condition = b.with_dims(n.in(1), {n.type(1).elements()});
  const dim length = x.type().dims.at(static_cast<std::size_t>(axis)), given = n.type(1).elements();
  if (!b.facts().at_least(length, given)) condition = b.slice_axis(condition, 0, 0, b.facts().min(length, given));
  if (auto known = b.constant_of(condition)) return {b.add(gather{axis}, {x, b.integers(non_zero_places(*known))})};
  auto [places, count] = find_non_zero(n, condition);
  return {shortened(n, b.add(gather{axis}, {x, places}), axis, count)};
}

// The type in which the library handles an ONNX type: the same type, or one that can represent all its values.
element_type sortable(element_type type) {
  using enum element_type;
  switch (type) {
    case f32:
    case i32:
    case i64: return type;
    case f16:
    case bf16: return f32;
    case i8:
    case u8:
    case i16:
    case u16:
    case boolean: return i32;
    case u32: return i64;
    default: refuse("elements of " + std::string(name(type)));
  }
}

// For each of the subtensors along an axis, how many of them come before it in lexicographic order; i64 [length]. Equal
// subtensors have the same number.
value lexicographic_ranks(builder& b, value x, std::int64_t axis) {
  std::vector<std::int64_t> order{axis};
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(x.type().rank()); ++k)
    if (k != axis) order.push_back(k);
  const dim length = x.type().dims.at(static_cast<std::size_t>(axis));
  const dim width = x.type().elements() / length;
  value rows = b.with_dims(b.permuted(x, order), {length, width});
  value left = b.with_dims(rows, {length, 1, width}), right = b.with_dims(rows, {1, length, width});
  auto number = [&](value condition) { return b.to_type(condition, element_type::i32); };
  // -1, 0 or 1 for each pair of elements; the first that is not 0 decides. There is none if the rows are equal, and
  // then the 0 at position 0 is taken.
  value sign = b.binary(fn::sub, number(b.binary(fn::greater, left, right)), number(b.binary(fn::less, left, right)));
  value first = b.add(arg_reduce{true, 2, true, false}, {b.unary(fn::abs, sign)});
  value compared = b.with_dims(b.add(gather_elements{2}, {sign, first}), {length, length});
  value before = b.to_type(b.binary(fn::greater, compared, 0.0), element_type::i64);
  return b.reduced(reduction_kind::sum, before, {1}, false);
}

// The results of the library's kernel for a vector. All have the length of the vector; `count` (i64[1]) says how many
// of the distinct values there are, and the padding of `first` is -1.
struct distinct_values {
  value values, first, inverse, counts, count;
};

// Only the valid elements of a bounded vector count: its padding becomes copies of the first element, which are
// subtracted from the count of that value.
distinct_values distinct(node& n, value vector) {
  builder& b = n.b;
  const dim length = vector.type().dims.at(0);
  value all = vector;
  if (is_bounded(length)) {
    all = with_room(n, vector, 0, capacity_of(n.owner.state(), length));
    value first = b.with_dims(b.slice_axis(all, 0, 0, 1), {});
    all = b.where(b.binary(fn::less, b.iota_like(element_type::i64, all.type().dims, 0), b.dims_tensor({length})), all,
                  first);
  }
  auto found = import_kernel(n, "Unique", {all});
  distinct_values result{found[0], found[1], found[2], found[3], found[4]};
  if (!is_bounded(length)) return result;
  const value size = b.dims_tensor({length});
  value copies = b.binary(fn::sub, b.dims_tensor(all.type().dims), size);
  value is_first = b.binary(fn::equal, result.first, 0.0);
  result.counts = b.binary(fn::sub, result.counts, b.where(is_first, copies, b.scalar(element_type::i64, 0)));
  result.count = b.binary(fn::min, result.count, size);
  result.inverse = b.slice_axis(result.inverse, 0, 0, length);
  return result;
}

// Restores the order of first occurrence. The place of a value in it is the number of values that occur first before
// it. Padding stays where it is.
void order_by_occurrence(builder& b, distinct_values& d) {
  const auto dims = d.first.type().dims;
  const scatter_elements write{0, scatter_reduction::none};
  const auto all = [&](double x) { return b.broadcast_to(b.scalar(element_type::i64, x), dims); };
  value at = b.binary(fn::max, d.first, 0.0);  // the padding marks element 0, which always occurs first
  value marks = b.add(write, {all(0), at, all(1)});
  value before = b.add(cumulative_sum{0, true, false}, {marks});
  value place = b.where(b.binary(fn::less, d.first, 0.0), b.iota_like(element_type::i64, dims, 0),
                        b.add(gather{0}, {before, at}));
  d.inverse = b.add(gather{0}, {place, d.inverse});
  for (value* v : {&d.values, &d.first, &d.counts}) *v = b.add(write, {*v, place, *v});
}

// f64 and u64 as i64 in the same order: the kernel takes signed integers of 64 bits. Of a negative f64, all bits but
// the sign are inverted; adding 0 makes -0 equal to 0.
value in_order_of_integers(builder& b, value x) {
  constexpr double least = -0x1p63;
  const element_type type = x.type().type;
  if (type == element_type::f64) x = b.binary(fn::add, x, 0.0);
  value bits = b.add(bit_cast{element_type::i64}, {x}), upper_half = b.binary(fn::less, bits, 0.0);
  if (type == element_type::u64)
    return b.where(upper_half, b.binary(fn::sub, bits, least), b.binary(fn::add, bits, least));
  value inverted = b.binary(fn::sub, b.scalar(element_type::i64, -1), bits);
  return b.where(upper_half, b.binary(fn::add, inverted, least), bits);
}

std::vector<value> unique(node& n) {
  builder& b = n.b;
  const bool of_64_bits = n.type(0).type == element_type::f64 || n.type(0).type == element_type::u64;
  const bool along = n.has_attribute("axis");
  if (n.type(0).is_static() && n.type(0).element_count() == 0) {
    if (along) refuse("subtensors of an input without elements");
    value none = b.constant(literal::of<std::int64_t>({element_type::i64, {0}}, {}));
    return {b.with_dims(n.in(0), {0}), none, none, none};
  }
  const std::int64_t axis = along ? n.axis("axis", 0, n.rank(0)) : 0;
  value compared = of_64_bits ? in_order_of_integers(b, n.in(0)) : b.to_type(n.in(0), sortable(n.type(0).type));
  if (along && has_bounded_dims(n.type(0))) refuse("subtensors of an input whose size depends on data");
  if (along) compared = lexicographic_ranks(b, compared, axis);
  distinct_values found = distinct(n, b.with_dims(compared, {compared.type().elements()}));
  if (n.integer("sorted", 1) == 0) order_by_occurrence(b, found);
  value values;
  if (along || of_64_bits) {
    value whole = along ? n.in(0) : b.with_dims(n.in(0), {compared.type().elements()});
    values = b.add(gather{axis}, {whole, b.binary(fn::max, found.first, 0.0)});
  } else {
    values = b.to_type(found.values, n.type(0).type);
  }
  const std::int64_t least = b.facts().at_least(compared.type().elements(), 1) ? 1 : 0;
  std::vector<value> results{shortened(n, values, axis, found.count, least), shortened(n, found.first, 0, found.count),
                             found.inverse, shortened(n, found.counts, 0, found.count)};
  results.resize(std::min(results.size(), n.outputs()));
  return results;
}

// Returns rows (image, class, box) by descending score within each list, [count, 3].
std::vector<value> non_max_suppression(node& n) {
  value boxes = n.in(0), scores = n.in(1);
  if (n.rank(0) != 3 || n.rank(1) != 3) invalid("boxes and scores must have rank 3");
  const std::string needed = "boxes are " + n.type(0).str() + ", scores " + n.type(1).str() +
                             ": they must be [images, boxes, 4] and [images, classes, boxes]";
  n.b.need_equal(n.dims(0)[2], 4, needed);
  n.b.need_equal(n.dims(0)[0], n.dims(1)[0], needed);
  n.b.need_equal(n.dims(0)[1], n.dims(1)[2], needed);
  auto number = [&](std::size_t i, std::string_view what, double otherwise) {
    return n.has(i) ? n.number(i, what) : otherwise;
  };
  std::int64_t most = n.has(2) ? n.constant(2, "max_output_boxes_per_class").at_int(0) : 0;
  if (most < 0) invalid("max_output_boxes_per_class is negative");
  if (auto boxes_at_most = n.b.facts().upper(n.type(0).dims.at(1))) most = std::min(most, *boxes_at_most);
  const double overlap = number(3, "iou_threshold", 0);
  if (!(overlap >= 0 && overlap <= 1)) invalid("iou_threshold is not in [0, 1]");
  // Boxes that cannot be chosen have a score below every limit.
  value never = n.b.constant(lowest(element_type::f32));
  double limit = -std::numeric_limits<double>::infinity();
  if (n.has(4) && n.b.constant_of(n.in(4))) limit = n.number(4, "score_threshold");
  else if (n.has(4)) scores = n.b.where(n.b.binary(fn::greater, scores, n.b.with_dims(n.in(4), {})), scores, never);
  scores = masked(n.b, scores, never);
  if (most == 0) return {n.b.constant(literal::of<std::int64_t>({element_type::i64, {0, 3}}, {}))};
  auto found = import_kernel(n, "NonMaxSuppression", {boxes, scores},
                             {{"max_output_boxes_per_class", most},
                              {"iou_threshold", overlap},
                              {"score_threshold", limit},
                              {"center_point_box", n.integer("center_point_box", 0)}});
  allow_padding(n.owner.state(), found[0]);
  return {shortened(n, found[0], 0, found[1])};
}

constexpr operator_row rows[] = {
    {"NonZero", non_zero, 9},
    {"Compress", compress, 9},
    {"Unique", unique, 11},
    {"NonMaxSuppression", non_max_suppression, 10, "number of boxes and overlap known at import"},
};

}  // namespace

std::span<const operator_row> bounded_operators() { return rows; }

}  // namespace kiln::onnx_import
