// Images from blocks, and the grids of affine maps.
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<std::int64_t> list_of(node& n, std::string_view name, std::size_t count, std::int64_t otherwise,
                                  std::int64_t least) {
  auto list = n.integers(name).value_or(std::vector<std::int64_t>(count, otherwise));
  if (list.size() != count)
    invalid("attribute '" + std::string(name) + "' has " + std::to_string(list.size()) + " entries");
  for (std::int64_t each : list)
    if (each < least || each > 1 << 20) invalid("attribute '" + std::string(name) + "' is out of range");
  return list;
}

// inputs: columns [N, C * block, L], image_shape, block_shape. Every column is a block of the image; where blocks
// overlap they are added. That is a transposed convolution, each channel with its own one-hot filters: filter p of a
// channel puts its column's element p at place p of the block.
std::vector<value> col2im(node& n) {
  builder& b = n.b;
  const known_elements image = n.known(1, "image_shape");
  const auto block = n.numbers(2, "block_shape");
  const std::size_t rank = image.size();
  if (rank < 1 || rank > 3)
    refuse("an image of " + std::to_string(rank) + " spatial axes is not supported, only 1 to 3");
  if (block.size() != rank || n.rank(0) != 3)
    invalid("columns " + n.type(0).str() + " do not fit blocks of " + std::to_string(block.size()) +
            " axes of an image of " + std::to_string(rank));
  transposed_convolution op;
  op.strides = list_of(n, "strides", rank, 1, 1);
  op.dilations = list_of(n, "dilations", rank, 1, 1);
  auto pads = list_of(n, "pads", 2 * rank, 0, 0);
  op.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  op.pads_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  std::int64_t elements = 1;
  std::vector<dim> counts{n.dims(0)[0], n.dims(0)[1]};
  for (std::size_t i = 0; i < rank; ++i) {
    if (block[i] < 1 || block[i] > 1 << 10 || n.b.facts().at_least(0, image[i]) ||
        n.b.facts().at_least(image[i], (1 << 30) + 1))
      invalid("the shapes are out of range");
    elements *= block[i];
    const dim spare = image[i] + dim(pads[i] + pads[rank + i] - op.dilations[i] * (block[i] - 1) - 1);
    if (n.b.facts().at_least(-1, spare)) invalid("a block is larger than the padded image");
    counts.push_back(spare / dim(op.strides[i]) + dim(1));
    op.output_padding.push_back(spare.is_static() ? spare.value() % op.strides[i] : 0);
  }
  if (rank == 1) b.need_equal(counts[2], n.dims(0)[2], "the blocks of the image do not fit " + n.type(0).str());
  if (!n.dims(0)[1].is_static() || elements > 1 << 12)
    refuse("blocks of " + std::to_string(elements) + " elements in " + n.type(0).str() +
           " are not supported, only of up to 4096 in a known number of columns");
  const std::int64_t columns = n.dims(0)[1].value(), channels = columns / elements;
  if (channels * elements != columns)
    invalid("the columns of " + n.type(0).str() + " do not divide into blocks of " + std::to_string(elements) +
            " elements");
  op.groups = channels;
  const element_type type = n.type(0).type, wide = is_float(type) ? compute_type(type) : element_type::f64;
  std::vector<double> filters(static_cast<std::size_t>(columns * elements));
  for (std::int64_t c = 0; c < columns; ++c) filters[static_cast<std::size_t>(c * elements + c % elements)] = 1;
  shape weights{wide, {columns, 1}};
  for (std::int64_t each : block) weights.dims.push_back(each);
  value x = b.with_dims(b.to_type(n.in(0), wide), counts);
  x = b.add(std::move(op), {x, b.constant(literal::from_doubles(weights, filters))});
  // No block covers what is left of an open image.
  for (std::size_t i = 0; i < rank; ++i)
    if (const dim rest = image[i] - x.type().dims.at(2 + i); !(rest == dim(0)))
      x = b.pad_axis(x, static_cast<std::int64_t>(2 + i), 0, rest, pad_mode::constant_, 0);
  return {b.to_type(x, type)};
}

// The coordinates from -1 to 1 of `length` points, wide[length].
value coordinates(builder& b, const dim& length, bool corners, element_type wide) {
  const value index = b.to_type(b.iota_like(element_type::i64, {length}, 0), wide);
  const value twice = b.binary(fn::mul, index, 2.0), count = b.to_type(b.dims_tensor({length}, 0), wide);
  // A single point is at the first corner.
  const value at = corners ? b.binary(fn::div, twice, b.binary(fn::max, b.binary(fn::sub, count, 1.0), 1.0))
                           : b.binary(fn::div, b.binary(fn::add, twice, 1.0), count);
  return b.binary(fn::sub, at, 1.0);
}

// inputs: theta [N, D, D + 1], size [N, C, spatial...]. Coordinates from -1 to 1, x first, times theta.
std::vector<value> affine_grid(node& n) {
  builder& b = n.b;
  const known_elements size = n.known(1, "size");
  const std::size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  if (axes != 2 && axes != 3) invalid("size has " + std::to_string(size.size()) + " entries");
  const auto wanted = static_cast<std::int64_t>(axes);
  if (n.rank(0) != 3 || !(n.dims(0)[1] == dim(wanted)) || !(n.dims(0)[2] == dim(wanted + 1)))
    invalid("theta is " + n.type(0).str() + " for " + std::to_string(axes) + " spatial axes");
  b.need_equal(n.dims(0)[0], size[0], "theta is " + n.type(0).str() + " for " + size[0].str() + " images");
  const std::vector<dim> image(size.begin() + 2, size.end());
  dim points = 1;
  for (const dim& each : image) {
    points = points * each;
    if (b.facts().at_least(0, each) || b.facts().at_least(points, (1 << 24) + 1)) invalid("size is out of range");
  }
  const bool corners = n.integer("align_corners", 0) != 0;
  const element_type type = n.type(0).type, wide = compute_type(type);
  std::vector<value> parts;
  for (std::size_t i = axes; i-- > 0;) {
    const value line = b.along_axis(coordinates(b, image[i], corners, wide), static_cast<std::int64_t>(i), axes);
    parts.push_back(b.with_dims(b.broadcast_to(line, image), {1, points}));
  }
  parts.push_back(b.broadcast_to(b.scalar(wide, 1), {1, points}));
  // [N * D, D + 1] times [D + 1, points], then the coordinates last.
  value made = b.permuted(matmul(b, b.to_type(n.in(0), wide), b.add(concat{0}, parts), wide), {0, 2, 1});
  std::vector<dim> dims{n.dims(0)[0]};
  dims.insert(dims.end(), image.begin(), image.end());
  dims.push_back(wanted);
  return {b.to_type(b.with_dims(made, dims), type)};
}

constexpr operator_row rows[] = {
    {"Col2Im", col2im, 18, "block_shape known at import"},
    {"AffineGrid", affine_grid, 20},
};

}  // namespace

std::span<const operator_row> image_operators() { return rows; }

}  // namespace kiln::onnx_import
