// Images from blocks, and the grids of affine maps.
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

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
  auto image = n.numbers(1, "image_shape"), block = n.numbers(2, "block_shape");
  const std::size_t rank = image.size();
  if (rank < 1 || rank > 3) refuse("an image of " + std::to_string(rank) + " axes; 1 to 3 are supported");
  if (block.size() != rank || n.rank(0) != 3) invalid("columns " + n.type(0).str() + " of blocks of another rank");
  transposed_convolution op;
  op.strides = list_of(n, "strides", rank, 1, 1);
  op.dilations = list_of(n, "dilations", rank, 1, 1);
  auto pads = list_of(n, "pads", 2 * rank, 0, 0);
  op.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  op.pads_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  std::int64_t elements = 1;
  std::vector<dim> counts{n.dims(0)[0], n.dims(0)[1]};
  for (std::size_t i = 0; i < rank; ++i) {
    if (block[i] < 1 || block[i] > 1 << 10 || image[i] < 1 || image[i] > 1 << 30)
      invalid("the shapes are out of range");
    elements *= block[i];
    const std::int64_t spare = image[i] + pads[i] + pads[rank + i] - op.dilations[i] * (block[i] - 1) - 1;
    if (spare < 0) invalid("a block is larger than the padded image");
    counts.push_back(spare / op.strides[i] + 1);
    op.output_padding.push_back(spare % op.strides[i]);
  }
  if (!n.dims(0)[1].is_static() || elements > 1 << 12)
    refuse("blocks of " + std::to_string(elements) + " elements in " + n.type(0).str());
  const std::int64_t columns = n.dims(0)[1].value(), channels = columns / elements;
  if (channels * elements != columns)
    invalid("columns " + n.type(0).str() + " are no blocks of " + std::to_string(elements));
  op.groups = channels;
  const element_type type = n.type(0).type, wide = is_float(type) ? compute_type(type) : element_type::f32;
  if (!is_float(type)) refuse("element type " + std::string(name(type)) + " is not supported, only floating types");
  std::vector<double> filters(static_cast<std::size_t>(columns * elements));
  for (std::int64_t c = 0; c < columns; ++c) filters[static_cast<std::size_t>(c * elements + c % elements)] = 1;
  shape weights{wide, {columns, 1}};
  for (std::int64_t each : block) weights.dims.push_back(each);
  value x = b.with_dims(b.to_type(n.in(0), wide), counts);
  x = b.add(std::move(op), {x, b.constant(literal::from_doubles(weights, filters))});
  return {b.to_type(x, type)};
}

// inputs: theta [N, D, D + 1], size [N, C, spatial...]. Coordinates from -1 to 1, x first, times theta.
std::vector<value> affine_grid(node& n) {
  builder& b = n.b;
  auto size = n.numbers(1, "size");
  const std::size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  if (axes != 2 && axes != 3) invalid("size has " + std::to_string(size.size()) + " entries");
  const auto wanted = static_cast<std::int64_t>(axes);
  if (n.rank(0) != 3 || !(n.dims(0)[1] == dim(wanted)) || !(n.dims(0)[2] == dim(wanted + 1)))
    invalid("theta is " + n.type(0).str() + " for " + std::to_string(axes) + " spatial axes");
  std::int64_t points = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    if (size[i + 2] < 1 || size[i + 2] > (1 << 24) / points) invalid("size is out of range");
    points *= size[i + 2];
  }
  const bool corners = n.integer("align_corners", 0) != 0;
  std::vector<double> grid(static_cast<std::size_t>(points * (wanted + 1)));
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (std::size_t i = axes; i-- > 0; rest /= size[i + 2]) {
      const auto index = static_cast<double>(rest % size[i + 2]), length = static_cast<double>(size[i + 2]);
      const double at = !corners ? (2 * index + 1) / length - 1 : length == 1 ? -1 : 2 * index / (length - 1) - 1;
      grid[static_cast<std::size_t>(point * (wanted + 1)) + (axes - 1 - i)] = at;
    }
    grid[static_cast<std::size_t>(point * (wanted + 1) + wanted)] = 1;
  }
  const element_type type = n.type(0).type, wide = compute_type(type);
  // [N * D, D + 1] times [D + 1, points], then the coordinates last.
  value base = b.permuted(b.constant(literal::from_doubles({wide, {points, wanted + 1}}, grid)), {1, 0});
  value made = b.permuted(matmul(b, b.to_type(n.in(0), wide), base, wide), {0, 2, 1});
  std::vector<dim> dims{n.dims(0)[0]};
  for (std::size_t i = 0; i < axes; ++i) dims.push_back(size[i + 2]);
  dims.push_back(wanted);
  return {b.to_type(b.with_dims(made, dims), type)};
}

constexpr operator_row rows[] = {
    {"Col2Im", col2im, 18, "image_shape and block_shape known at import; floating types"},
    {"AffineGrid", affine_grid, 20, "size known at import"},
};

}  // namespace

std::span<const operator_row> image_operators() { return rows; }

}  // namespace kiln::onnx_import
