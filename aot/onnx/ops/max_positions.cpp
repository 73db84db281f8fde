#include "aot/onnx/ops/max_positions.hpp"

#include <limits>
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/window.hpp"
#include "ir/shape.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
using numbers = std::vector<std::int64_t>;

// Returns the strides of the spatial axes in the flattened image.
std::vector<dim> spatial_strides(const std::vector<dim>& dims, bool column_major) {
  std::vector<dim> strides(dims.size(), 1);
  if (column_major)
    for (std::size_t k = 1; k < dims.size(); ++k) strides[k] = strides[k - 1] * dims[k - 1];
  else
    for (std::size_t k = dims.size(); k-- > 1;) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

value times(builder& b, value x, const dim& factor) {
  return factor.is_static() ? b.binary(fn::mul, x, static_cast<double>(factor.value()))
                            : b.binary(fn::mul, x, b.data_of(factor));
}

// Returns the elements that each place of the window reads, [N, C, places, result...]. Padding is lower than every
// element of the image.
value windows(builder& b, value x, const pooling& op, const std::vector<dim>& image, const std::vector<dim>& result) {
  const std::size_t axes = image.size();
  if (!is_float(x.type().type)) x = b.to_type(x, element_type::i32);
  pad padding{numbers(axes + 2, 0), numbers(axes + 2, 0), pad_mode::constant_,
              is_float(x.type().type) ? -std::numeric_limits<double>::infinity() : -0x1p31};
  for (std::size_t k = 0; k < axes; ++k) {
    padding.before[k + 2] = op.pads_begin[k];
    padding.after[k + 2] = op.pads_end[k] + op.strides[k] - 1;  // ceil_mode: less than a stride behind the pads
    if (!image[k].is_static() || !result[k + 2].is_static()) continue;
    const std::int64_t last = (result[k + 2].value() - 1) * op.strides[k] + (op.window[k] - 1) * op.dilations[k];
    padding.after[k + 2] = std::max<std::int64_t>(0, last + 1 - image[k].value() - op.pads_begin[k]);
  }
  value padded = b.add(padding, {x});
  const std::int64_t places = std::accumulate(op.window.begin(), op.window.end(), std::int64_t{1}, std::multiplies<>{});
  const numbers place_strides = row_major_strides(op.window);
  std::vector<dim> lifted = result;
  lifted.insert(lifted.begin() + 2, 1);
  std::vector<value> read;
  for (std::int64_t place = 0; place < places; ++place) {
    slice at{numbers(axes + 2, 0), result, numbers(axes + 2, 1)};
    for (std::size_t k = 0; k < axes; ++k) {
      at.starts[k + 2] = place / place_strides[k] % op.window[k] * op.dilations[k];
      at.steps[k + 2] = op.strides[k];
    }
    read.push_back(b.with_dims(b.add(at, {padded}), lifted));
  }
  return read.size() == 1 ? read[0] : b.add(concat{2}, read);
}

// inputs: X, positions in the flattened result, and optionally the result's shape. Without the shape, the result has
// the smallest dims that the pooling reduces to those of X.
std::vector<value> max_unpool(node& n) {
  builder& b = n.b;
  const auto dims = n.dims(0);
  if (dims.size() < 3 || !(n.dims(1) == dims))
    invalid("the indices " + n.type(1).str() + " do not fit X " + n.type(0).str());
  const std::size_t axes = dims.size() - 2;
  const numbers size = spatial_list(n, "kernel_shape", axes, 1, 1), strides = spatial_list(n, "strides", axes, 1, 1);
  const auto [before, after] = explicit_pads(n, axes);
  std::vector<dim> image{dims.at(0), dims.at(1)};
  for (std::size_t k = 0; k < axes; ++k)
    image.push_back((dims.at(k + 2) - dim(1)) * dim(strides[k]) + dim(size[k] - before[k] - after[k]));
  dim elements = 1, given = n.type(0).elements();
  for (const dim& d : image) elements = elements * d;
  value zeros = b.broadcast_to(b.scalar(n.type(0).type, 0), {elements});
  value flat = b.add(scatter_elements{0}, {zeros, b.with_dims(n.in(1), {given}), b.with_dims(n.in(0), {given})});
  value result = b.with_dims(flat, image);
  if (!n.has(2)) return {result};
  const numbers wanted = n.numbers(2, "output_shape");
  if (wanted.size() != dims.size()) invalid("output_shape has " + std::to_string(wanted.size()) + " entries");
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (!(image[k] == dim(wanted[k])))
      result = b.pad_axis(result, static_cast<std::int64_t>(k), 0, dim(wanted[k]) - image[k], pad_mode::constant_, 0);
  return {result};
}

// Rounds like C's round(): halves away from zero.
value rounded_away(builder& b, value x) {
  return b.binary(fn::mul, b.unary(fn::sign, x), b.unary(fn::floor, b.binary(fn::add, b.unary(fn::abs, x), 0.5)));
}

// Returns whether each index of an axis lies in each bin of each region, bool [regions, bins, length]. `first` and
// `last` are the regions' bounds [regions, 1].
value in_bins(builder& b, value first, value last, std::int64_t bins, const dim& length) {
  const dim regions = first.type().dims.at(0);
  value extent = b.binary(fn::max, b.binary(fn::add, b.binary(fn::sub, last, first), 1.0), 1.0);
  value bin = b.iota_like(element_type::f32, {bins}, 0);
  auto bound = [&](value edge, fn round) {
    value share = b.binary(fn::div, extent, static_cast<double>(bins));
    return b.with_dims(b.binary(fn::add, b.unary(round, b.binary(fn::mul, share, edge)), first), {regions, bins, 1});
  };
  value index = b.iota_like(element_type::f32, {length}, 0);
  return b.binary(fn::logical_and, b.binary(fn::greater_equal, index, bound(bin, fn::floor)),
                  b.binary(fn::less, index, bound(b.binary(fn::add, bin, 1.0), fn::ceil)));
}

// inputs: X [N, C, H, W] and regions [R, 5]: image, then x and y of two corners. An empty bin gives 0.
std::vector<value> max_roi_pool(node& n) {
  builder& b = n.b;
  const auto dims = n.dims(0);
  const auto pooled = n.integers("pooled_shape").value_or(numbers{});
  if (dims.size() != 4 || n.rank(1) != 2 || !(n.dims(1)[1] == dim(5)) || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    invalid("needs images of rank 4, regions [regions, 5] and a pooled_shape of two sizes, not " + n.type(0).str() +
            " and " + n.type(1).str());
  const dim height = dims.at(2), width = dims.at(3);
  const dim regions = n.dims(1)[0];
  value corners = b.to_type(n.in(1), element_type::f32);
  auto column = [&](std::int64_t i) { return b.slice_axis(corners, 1, i, 1); };
  auto corner = [&](std::int64_t i) {
    return rounded_away(b, b.binary(fn::mul, column(i), n.real("spatial_scale", 1)));
  };
  value image = b.to_type(b.with_dims(column(0), {regions}), element_type::i64);
  value x = b.to_type(b.add(gather{0}, {n.in(0), image}), element_type::f32);
  value lowest = b.scalar(element_type::f32, -std::numeric_limits<double>::infinity());
  value rows = b.with_dims(in_bins(b, corner(2), corner(4), pooled[0], height), {regions, 1, pooled[0], height, 1});
  value columns = b.with_dims(in_bins(b, corner(1), corner(3), pooled[1], width), {regions, 1, 1, pooled[1], width});
  value of_rows = b.where(rows, b.with_dims(x, {regions, dims.at(1), 1, height, width}), lowest);
  of_rows =
      b.with_dims(b.reduced(reduction_kind::max, of_rows, {3}, false), {regions, dims.at(1), pooled[0], 1, width});
  value result = b.reduced(reduction_kind::max, b.where(columns, of_rows, lowest), {4}, false);
  return {
      b.to_type(b.where(b.binary(fn::equal, result, lowest), b.scalar(element_type::f32, 0), result), n.type(0).type)};
}

constexpr operator_row rows[] = {
    {"MaxUnpool", max_unpool, 9},
    {"MaxRoiPool", max_roi_pool, 1},
};

}  // namespace

value max_positions(node& n, const pooling& op, const std::vector<dim>& result) {
  builder& b = n.b;
  const std::vector<dim> image(n.dims(0).begin() + 2, n.dims(0).end());
  if (n.text("auto_pad", "NOTSET").starts_with("SAME"))
    for (const dim& d : image) static_dim(d, "the positions of maxima with auto_pad");
  const std::vector<dim> strides = spatial_strides(image, n.integer("storage_order", 0) != 0);
  const numbers place_strides = row_major_strides(op.window);
  value place = b.add(arg_reduce{true, 2, false, false}, {windows(b, n.in(0), op, image, result)});
  const dim planes = result[0] * result[1];
  const dim pixels = std::accumulate(image.begin(), image.end(), dim(1), std::multiplies<>{});
  std::vector<dim> per_plane(result.size(), 1);
  per_plane[0] = result[0], per_plane[1] = result[1];
  value position = b.with_dims(times(b, b.iota_like(element_type::i64, {planes}, 0), pixels), per_plane);
  for (std::size_t k = 0; k < image.size(); ++k) {
    value in_window = b.binary(fn::mod, b.binary(fn::div, place, static_cast<double>(place_strides[k])),
                               static_cast<double>(op.window[k]));
    std::vector<dim> along(result.size(), 1);
    along[k + 2] = result[k + 2];
    value start = b.binary(fn::mul, b.iota_like(element_type::i64, along, static_cast<std::int64_t>(k) + 2),
                           static_cast<double>(op.strides[k]));
    value index = b.binary(fn::add, b.binary(fn::mul, in_window, static_cast<double>(op.dilations[k])),
                           b.binary(fn::sub, start, static_cast<double>(op.pads_begin[k])));
    position = b.binary(fn::add, position, times(b, index, strides[k]));
  }
  return position;
}

std::span<const operator_row> max_position_operators() { return rows; }

}  // namespace kiln::onnx_import
