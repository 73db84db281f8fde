// Helpers shared by convolutions and poolings (strides, dilations and pads of a window over the spatial axes), and by
// quantized operators (rounding to an integer type).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

struct window {
  std::vector<std::int64_t> size, strides, dilations, pads_begin, pads_end;
};

// An attribute with one entry per spatial axis. Every entry must be at least `least`; `otherwise` is the default.
std::vector<std::int64_t> spatial_list(const node& n, std::string_view name, std::size_t axes, std::int64_t otherwise,
                                       std::int64_t least);
std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> explicit_pads(const node& n, std::size_t axes);
// The spatial dims of the weights. The attribute kernel_shape must match if it is present.
std::vector<std::int64_t> weight_window(const node& n, std::size_t weights);
// Reads strides, dilations, pads and auto_pad for an image [N, C, spatial...]. With auto_pad and strides over a
// symbolic dimension, the padding depends on the image size: this is refused, unless the image comes from padded_image.
window window_of(const node& n, const std::vector<dim>& image, std::vector<std::int64_t> size, bool padded = false);
// Pads with `fill` those axes of the image whose padding is not a number that window_of can return.
value padded_image(node& n, value image, const std::vector<std::int64_t>& size, double fill);

std::int64_t static_dim(const dim& d, std::string_view what);

// Converts to an 8-bit float. Values beyond the largest finite value are clamped to it; NaN stays NaN.
value saturated_f8(builder& b, value x, element_type type);

// round(x) + zero_point, saturated to the zero point's type. x is f32 and already divided by its scale.
value quantized(builder& b, value x, value zero_point);

}  // namespace kiln::onnx_import
