// DeformConv on 2-D images: samples the image at shifted positions, one column for each position of the window, and
// multiplies the columns by the weights.
#include <array>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// The sizes of one DeformConv. "Positions" are elements of the result, "places" are elements of the window.
struct sizes {
  dim batch, positions;
  std::int64_t channels, offset_groups, places;
  std::array<dim, 2> image, result;
};

// Returns the coordinates along one axis at which each place of the window reads, f32 [batch * offset groups, places *
// positions].
value coordinates(node& n, const window& w, const sizes& s, std::size_t axis) {
  builder& b = n.b;
  const std::vector<dim> grid{s.places, s.result[0], s.result[1]};
  value place = b.iota_like(element_type::i64, grid, 0);
  value in_window = axis == 0 ? b.binary(fn::div, place, static_cast<double>(w.size[1]))
                              : b.binary(fn::mod, place, static_cast<double>(w.size[1]));
  value position = b.iota_like(element_type::i64, grid, static_cast<std::int64_t>(axis) + 1);
  value regular = b.binary(fn::add, b.binary(fn::mul, position, static_cast<double>(w.strides[axis])),
                           b.binary(fn::mul, in_window, static_cast<double>(w.dilations[axis])));
  regular = b.binary(fn::sub, b.to_type(regular, element_type::f32), static_cast<double>(w.pads_begin[axis]));
  const dim rows = s.batch * dim(s.offset_groups), columns = dim(s.places) * s.positions;
  value offsets = b.with_dims(n.in(2), {rows, s.places, 2, s.positions});
  offsets = b.with_dims(b.slice_axis(offsets, 2, static_cast<std::int64_t>(axis), 1), {rows, columns});
  return b.binary(fn::add, b.to_type(offsets, element_type::f32), b.with_dims(regular, {columns}));
}

// Samples the image at these coordinates with bilinear interpolation; outside the image is 0. The result is f32 [rows,
// columns, channels of a group].
value sampled(builder& b, value table, const std::array<value, 2>& at, const sizes& s) {
  const std::vector<dim> dims = at[0].type().dims;
  std::array<value, 2> low{b.unary(fn::floor, at[0]), b.unary(fn::floor, at[1])};
  value sum;
  for (int corner = 0; corner < 4; ++corner) {
    value weight, index;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const bool upper = axis == 0 ? corner >= 2 : corner % 2 != 0;
      value fraction = b.binary(fn::sub, at[axis], low[axis]);
      value share = upper ? fraction : b.binary(fn::sub, b.scalar(element_type::f32, 1), fraction);
      value cell = upper ? b.binary(fn::add, low[axis], 1.0) : low[axis];
      value size = b.data_of(s.image[axis]), last = b.binary(fn::sub, size, 1.0);
      value limits[] = {b.scalar(element_type::f32, 0), b.to_type(last, element_type::f32)};
      value inside = b.add(elementwise{fn::clamp}, b.broadcast_together({cell, limits[0], limits[1]}));
      share = b.where(b.binary(fn::equal, inside, cell), share, b.scalar(element_type::f32, 0));
      value whole = b.to_type(inside, element_type::i64);
      weight = weight ? b.binary(fn::mul, weight, share) : share;
      index = index ? b.binary(fn::add, b.binary(fn::mul, index, size), whole) : whole;
    }
    value pixels = b.add(gather_nd{1}, {table, b.with_dims(index, {dims.at(0), dims.at(1), 1})});
    value part =
        b.binary(fn::mul, b.to_type(pixels, element_type::f32), b.with_dims(weight, {dims.at(0), dims.at(1), 1}));
    sum = sum ? b.binary(fn::add, sum, part) : part;
  }
  return sum;
}

std::vector<value> deform_conv(node& n) {
  builder& b = n.b;
  value x = n.in(0), weights = n.in(1);
  if (n.rank(0) != 4 || n.rank(1) != 4) refuse("only images of 2 spatial axes are supported, not " + x.type().str());
  const window w = window_of(n, n.dims(0), weight_window(n, 1));
  const std::int64_t groups = n.integer("group", 1);
  sizes s{n.dims(0)[0],
          1,
          static_dim(n.dims(0)[1], "the channels"),
          n.integer("offset_group", 1),
          w.size[0] * w.size[1],
          {n.dims(0)[2], n.dims(0)[3]},
          {n.dims(2).at(2), n.dims(2).at(3)}};
  s.positions = s.result[0] * s.result[1];
  const std::int64_t filters = static_dim(n.dims(1)[0], "the filters");
  if (groups < 1 || s.offset_groups < 1 || s.channels % groups || s.channels % s.offset_groups || filters % groups ||
      !(n.dims(1)[1] == dim(s.channels / groups)))
    invalid("weights " + weights.type().str() + " do not fit " + x.type().str() + " in " + std::to_string(groups) +
            " groups and " + std::to_string(s.offset_groups) + " offset groups");
  if (!(n.dims(2)[1] == dim(s.offset_groups * s.places * 2)))
    invalid("offsets are " + n.type(2).str() + " for " + std::to_string(s.places) + " places of the window");
  for (std::size_t k = 0; k < 2; ++k) {
    const std::int64_t reach = (w.size[k] - 1) * w.dilations[k] + 1;
    const dim length = (s.image[k] + dim(w.pads_begin[k] + w.pads_end[k] - reach)) / dim(w.strides[k]) + dim(1);
    b.need_equal(s.result[k], length, "offsets are " + n.type(2).str() + ", the result has an axis of " + length.str());
  }
  const dim rows = s.batch * dim(s.offset_groups);
  const std::int64_t of_group = s.channels / s.offset_groups;
  const dim pixels = s.image[0] * s.image[1];
  value table = b.permuted(b.with_dims(x, {rows, of_group, pixels}), {0, 2, 1});
  value columns = sampled(b, table, {coordinates(n, w, s, 0), coordinates(n, w, s, 1)}, s);
  if (n.has(4))
    columns = b.binary(fn::mul, columns,
                       b.to_type(b.with_dims(n.in(4), {rows, dim(s.places) * s.positions, 1}), element_type::f32));
  // [rows, places * positions, channels] → [batch, groups, channels of a group * places, positions].
  columns = b.permuted(b.with_dims(columns, {rows, s.places, s.positions, of_group}), {0, 3, 1, 2});
  const std::int64_t depth = s.channels / groups * s.places;
  columns = b.to_type(b.with_dims(columns, {s.batch, groups, depth, s.positions}), x.type().type);
  value filter = b.broadcast_to(b.with_dims(weights, {1, groups, filters / groups, depth}),
                                {s.batch, groups, filters / groups, depth});
  value result = b.add(dot{false, false, x.type().type}, {filter, columns});
  result = b.with_dims(result, {s.batch, filters, s.result[0], s.result[1]});
  if (n.has(3)) result = b.binary(fn::add, result, b.along_axis(n.in(3), 1, 4));
  return {result};
}

constexpr operator_row rows[] = {{"DeformConv", deform_conv, 19, "2 spatial axes"}};

}  // namespace

std::span<const operator_row> deform_conv_operators() { return rows; }

}  // namespace kiln::onnx_import
