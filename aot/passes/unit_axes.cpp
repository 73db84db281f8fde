#include "aot/passes/unit_axes.hpp"

#include <algorithm>
#include <vector>

namespace kiln {
namespace {

// Positions of the first spatial axis in the image (and the result), and in the weights.
struct spatial_axes {
  explicit spatial_axes(const convolution& op)
      : image(op.layout == tensor_layout::channels_first ? 2 : 1),
        weights(op.layout == tensor_layout::channels_first ? 2 : 0) {}
  std::size_t image, weights;
};

void swap_axes(std::vector<std::int64_t>& list) { std::swap(list[0], list[1]); }

}  // namespace

value windows_over_one_pixel(rewriter& write, value root, const match::captures& found) {
  convolution op = *root.producer->op().get_if<convolution>();
  const value image = found["x"], weights = root.producer->inputs()[1];
  const spatial_axes axes(op);
  slice taps{std::vector<std::int64_t>(weights.type().rank()), weights.type().dims,
             std::vector<std::int64_t>(weights.type().rank(), 1)};
  bool changed = false;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const dim& window = weights.type().dims[axes.weights + i];
    // With one result, the window starts at -pad, and its tap number pad / dilation lies on the pixel.
    if (!(image.type().dims[axes.image + i] == dim(1)) || !(root.type().dims[axes.image + i] == dim(1)) ||
        !window.is_static() || window == dim(1) || op.pads_begin[i] % op.dilations[i])
      continue;
    const std::int64_t tap = op.pads_begin[i] / op.dilations[i];
    if (tap < 0 || tap >= window.value()) continue;
    taps.starts[axes.weights + i] = tap, taps.lengths[axes.weights + i] = 1;
    op.strides[i] = op.dilations[i] = 1, op.pads_begin[i] = op.pads_end[i] = 0;
    changed = true;
  }
  return changed ? write.add(op, {image, write.add(taps, {weights})}) : value{};
}

value column_as_row(rewriter& write, value root, const match::captures& found) {
  convolution op = *root.producer->op().get_if<convolution>();
  const value image = found["x"], weights = root.producer->inputs()[1];
  if (op.strides.size() != 2 || op.pads_begin[1] || op.pads_end[1]) return {};
  const spatial_axes axes(op);
  const auto swapped = [](value v, std::size_t axis) {
    std::vector<dim> dims = v.type().dims;
    std::swap(dims[axis], dims[axis + 1]);
    return dims;
  };
  const auto is_column = [](value v, std::size_t axis) { return v.type().dims[axis + 1] == dim(1); };
  if (!is_column(image, axes.image) || !is_column(weights, axes.weights) || !is_column(root, axes.image) ||
      image.type().dims[axes.image] == dim(1))
    return {};
  for (auto* list : {&op.strides, &op.dilations, &op.pads_begin, &op.pads_end}) swap_axes(*list);
  const value row = write.add(op, {write.reshape_to(image, swapped(image, axes.image)),
                                   write.reshape_to(weights, swapped(weights, axes.weights))});
  return write.reshape_to(row, root.type().dims);
}

}  // namespace kiln
