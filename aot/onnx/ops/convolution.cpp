// Conv, ConvTranspose, and the integer convolutions.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

value add_channel_bias(node& n, value image, value bias) {
  return n.b.binary(scalar_function::add, image, n.b.along_axis(bias, 0, image.type().rank() - 1));
}

convolution convolution_of(node& n, std::size_t image, std::size_t weights, bool padded = false) {
  const auto& dims = n.dims(image);
  if (dims.size() < 3 || dims.size() > 5)
    refuse("its image has rank " + std::to_string(dims.size()) + "; 1 to 3 spatial axes are supported");
  if (n.rank(weights) != dims.size())
    invalid("weights of rank " + std::to_string(n.rank(weights)) + " do not fit an image of rank " +
            std::to_string(dims.size()));
  window w = window_of(n, n.dims(image), weight_window(n, weights), padded);
  return {w.strides, w.dilations, w.pads_begin, w.pads_end, n.integer("group", 1), tensor_layout::channels_first};
}

std::vector<value> conv(node& n) {
  convolution op = convolution_of(n, 0, 1, true);
  value result = n.b.add(std::move(op), {padded_image(n, n.in(0), weight_window(n, 1), 0), n.in(1)});
  return {n.has(2) ? add_channel_bias(n, result, n.in(2)) : result};
}

// inputs: X, W, bias, and a tensor that is added before the activation.
std::vector<value> fused_conv(node& n) {
  value result = conv(n)[0];
  if (n.has(3)) result = n.b.add(elementwise{scalar_function::add}, {result, n.in(3)});
  return {activated(n, result)};
}

std::vector<value> conv_transpose(node& n) {
  const auto& dims = n.dims(0);
  if (dims.size() < 3 || dims.size() > 5)
    refuse("its image has rank " + std::to_string(dims.size()) + "; 1 to 3 spatial axes are supported");
  if (n.rank(1) != dims.size())
    invalid("weights of rank " + std::to_string(n.rank(1)) + " do not fit an image of rank " +
            std::to_string(dims.size()));
  auto window = weight_window(n, 1);
  std::size_t axes = window.size();
  transposed_convolution op;
  op.strides = spatial_list(n, "strides", axes, 1, 1);
  op.dilations = spatial_list(n, "dilations", axes, 1, 1);
  op.output_padding = spatial_list(n, "output_padding", axes, 0, 0);
  op.groups = n.integer("group", 1);
  std::tie(op.pads_begin, op.pads_end) = explicit_pads(n, axes);
  std::string automatic = n.text("auto_pad", "NOTSET");
  auto wanted = n.integers("output_shape");
  if (wanted && wanted->size() == dims.size())
    wanted->erase(wanted->begin(), wanted->begin() + 2);  // some exporters include batch and channels
  if (wanted && wanted->size() != axes)
    invalid("output_shape needs " + std::to_string(axes) + " entries, has " + std::to_string(wanted->size()));
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (std::size_t a = 0; (wanted || same) && a < axes; ++a) {
    // What is cropped of the full result. By SAME_UPPER and SAME_LOWER the output has the image's size times the
    // stride, so the number does not depend on the image.
    std::int64_t total = op.output_padding[a] + (window[a] - 1) * op.dilations[a] + 1 - op.strides[a];
    if (wanted) total += op.strides[a] * static_dim(dims.at(a + 2), "output_shape") - (*wanted)[a];
    // Nothing to crop: the difference is padding of the output.
    if (total < 0) {
      op.output_padding[a] -= total;
      total = 0;
    }
    std::int64_t smaller = total / 2;
    // An odd element is cropped at the end for SAME_UPPER, else at the beginning.
    bool upper = automatic == "SAME_UPPER";
    op.pads_begin[a] = upper ? smaller : total - smaller;
    op.pads_end[a] = total - op.pads_begin[a];
  }
  value result = n.b.add(op, {n.in(0), n.in(1)});
  return {n.has(2) ? add_channel_bias(n, result, n.in(2)) : result};
}

// Returns x - zero point in i32. The zero point is a scalar or a vector along `axis`.
value centered(node& n, std::size_t i, std::size_t zero_point, std::int64_t axis) {
  value x = n.b.to_type(n.in(i), element_type::i32);
  if (!n.has(zero_point)) return x;
  value z = n.b.to_type(n.in(zero_point), element_type::i32);
  z = z.type().elements() == dim(1) ? n.b.with_dims(z, {}) : n.b.along_axis(z, axis, x.type().rank());
  return n.b.binary(scalar_function::sub, x, z);
}

std::vector<value> conv_integer(node& n) {
  value image = padded_image(n, centered(n, 0, 2, 1), weight_window(n, 1), 0);
  return {n.b.add(convolution_of(n, 0, 1, true), {image, centered(n, 1, 3, 0)})};
}

// inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (i32).
std::vector<value> qlinear_conv(node& n) {
  builder& b = n.b;
  value image = padded_image(n, centered(n, 0, 2, 1), weight_window(n, 3), 0);
  value sum = b.add(convolution_of(n, 0, 3, true), {image, centered(n, 3, 5, 0)});
  if (n.has(8)) sum = add_channel_bias(n, sum, n.in(8));
  value weight_scale =
      n.in(4).type().elements() == dim(1) ? b.with_dims(n.in(4), {}) : b.along_axis(n.in(4), 0, sum.type().rank() - 1);
  value scale = b.binary(scalar_function::div, b.binary(scalar_function::mul, b.with_dims(n.in(1), {}), weight_scale),
                         b.with_dims(n.in(6), {}));
  value real = b.binary(scalar_function::mul, b.to_type(sum, element_type::f32), scale);
  return {quantized(b, real, b.with_dims(n.in(7), {}))};
}

constexpr operator_row rows[] = {
    {"FusedConv", fused_conv, 1, "1 to 3 spatial axes", microsoft_domain},
    {"Conv", conv, 6, "1 to 3 spatial axes"},
    {"ConvTranspose", conv_transpose, 6, "1 to 3 spatial axes"},
    {"ConvInteger", conv_integer, 10},
    {"QLinearConv", qlinear_conv, 10, "8-bit types"},
};

}  // namespace

std::span<const operator_row> convolution_operators() { return rows; }

}  // namespace kiln::onnx_import
