// Operators that read or write elements at indices.
#include "aot/onnx/operators.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<value> gathered(node& n) { return {n.b.add(gather{n.axis("axis", 0, n.rank(0))}, {n.in(0), n.in(1)})}; }

std::vector<value> gathered_elements(node& n) {
  return {n.b.add(gather_elements{n.axis("axis", 0, n.rank(0))}, {n.in(0), n.in(1)})};
}

std::vector<value> gathered_nd(node& n) { return {n.b.add(gather_nd{n.integer("batch_dims", 0)}, {n.in(0), n.in(1)})}; }

scatter_reduction reduction_of(node& n) {
  scatter_reduction result = scatter_reduction::none;
  std::string text = n.text("reduction", "none");
  if (!parse_enum(text, result)) invalid("reduction '" + text + "' is unknown");
  return result;
}

std::vector<value> scattered_elements(node& n) {
  return {n.b.add(scatter_elements{n.axis("axis", 0, n.rank(0)), reduction_of(n)}, {n.in(0), n.in(1), n.in(2)})};
}

std::vector<value> scattered_nd(node& n) { return {n.b.add(scatter_nd{reduction_of(n)}, {n.in(0), n.in(1), n.in(2)})}; }

std::vector<value> segment_sums(node& n) {
  if (!n.has_attribute("segments")) invalid("needs the attribute 'segments', the number of rows of its output");
  return {n.b.add(segment_sum{n.integer("segments", 0)}, {n.in(0), n.in(1)})};
}

std::vector<value> top(node& n) {
  std::int64_t k = 0;
  if (n.opset < 10) {
    k = n.integer("k", 0);
  } else {
    auto given = n.numbers(1, "k");
    if (given.size() != 1) invalid("k must have one element");
    k = given[0];
  }
  value first = n.b.add(top_k{k, n.axis("axis", -1, n.rank(0)), n.integer("largest", 1) != 0}, {n.in(0)});
  return {first, builder::output(first, 1)};
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
  std::string mode = n.text("mode", "linear");
  if (mode != "linear" && mode != "circular") invalid("mode '" + mode + "' is unknown");
  if (axis == 0) invalid("axis 0 is the batch");
  if (update.type().rank() != dims.size())
    invalid("the update " + update.type().str() + " does not fit the cache " + cache.type().str());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != at) b.need_equal(dims[i], update.type().dims[i], "axis " + std::to_string(i) + " of cache and update");
  const dim length = update.type().dims[at];
  if (length.is_static() && dims[at].is_static() && length.value() > dims[at].value())
    invalid("the update " + update.type().str() + " is longer than the cache " + cache.type().str());
  if (length == dim(0)) return {cache};
  value place = b.along_axis(b.iota_like(element_type::i64, {dims[at]}, 0), axis, dims.size());
  if (n.has(2)) {
    if (n.rank(2) != 1) invalid("write_indices is " + n.type(2).str() + ", not one index for each batch entry");
    place = b.binary(fn::sub, place, b.along_axis(b.to_type(n.in(2), element_type::i64), 0, dims.size()));
  }
  if (mode == "circular") place = b.binary(fn::mod, place, b.dims_tensor({dims[at]}, 0));
  value written = b.binary(fn::logical_and, b.binary(fn::greater_equal, place, 0.0),
                           b.binary(fn::less, place, b.dims_tensor({length}, 0)));
  if (length != dim(1)) {
    value index = b.where(written, place, b.scalar(element_type::i64, 0));
    update = b.add(gather_elements{axis}, {update, b.broadcast_to(index, dims)});
  }
  return {b.where(written, update, cache)};
}

constexpr operator_row rows[] = {
    {"Gather", gathered},
    {"GatherElements", gathered_elements, 11},
    {"GatherND", gathered_nd, 11},
    {"ScatterElements", scattered_elements, 11},
    {"Scatter", scattered_elements, 9},
    {"ScatterND", scattered_nd, 11},
    {"SegmentSum", segment_sums, 1, "ids ascend", "kiln"},
    {"TopK", top, 6, "k known at import"},
    {"ArgMax", arg<true>},
    {"ArgMin", arg<false>},
    {"TensorScatter", tensor_scatter, 24},
    {"ReverseSequence", reverse_sequence, 10},
};

}  // namespace

std::span<const operator_row> indexing_operators() { return rows; }

}  // namespace kiln::onnx_import
