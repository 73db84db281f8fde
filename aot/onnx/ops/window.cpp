#include "aot/onnx/ops/window.hpp"
#include "aot/onnx/ops/text_choice.hpp"

#include <algorithm>

namespace kiln::onnx_import {

std::vector<std::int64_t> spatial_list(const node& n, std::string_view name, std::size_t axes, std::int64_t otherwise,
                                       std::int64_t least) {
  auto list = n.integers(name);
  if (!list || list->empty()) return std::vector<std::int64_t>(axes, otherwise);
  constexpr std::int64_t most = 1 << 20;  // prevents overflow in window arithmetic
  if (list->size() != axes)
    invalid(std::string(name) + " needs " + std::to_string(axes) + " entries, has " + std::to_string(list->size()));
  if (std::ranges::any_of(*list, [&](std::int64_t x) { return x < least || x > most; }))
    invalid(std::string(name) + " must be from " + std::to_string(least) + " to " + std::to_string(most));
  return *list;
}

std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> explicit_pads(const node& n, std::size_t axes) {
  auto pads = spatial_list(n, "pads", 2 * axes, 0, 0);
  auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
  return {{pads.begin(), middle}, {middle, pads.end()}};
}

std::vector<std::int64_t> weight_window(const node& n, std::size_t weights) {
  std::vector<std::int64_t> window;
  for (std::size_t a = 2; a < n.rank(weights); ++a) {
    window.push_back(static_dim(n.dims(weights)[a], "the weights"));
    if (window.back() < 1 || window.back() > 1 << 20)
      invalid("the weights " + n.type(weights).str() + " do not contain a valid window");
  }
  auto stated = n.integers("kernel_shape");
  if (stated && *stated != window) invalid("kernel_shape differs from the weights " + n.type(weights).str());
  return window;
}

std::int64_t static_dim(const dim& d, std::string_view what) {
  if (!d.is_static())
    refuse(std::string(what) + " need a number for dimension '" + d.str() + "'; give it a value with --dim");
  if (d.value() > largest_dim) invalid("a dimension of " + d.str() + " is out of range");
  return d.value();
}

value padded_image(node& n, value image, const std::vector<std::int64_t>& size, double fill) {
  std::string automatic = n.text("auto_pad", "NOTSET");
  auto strides = spatial_list(n, "strides", size.size(), 1, 1),
       dilations = spatial_list(n, "dilations", size.size(), 1, 1);
  if ((automatic != "SAME_UPPER" && automatic != "SAME_LOWER") || image.type().rank() != size.size() + 2) return image;
  for (std::size_t a = 0; a < size.size(); ++a) {
    dim in = image.type().dims.at(a + 2), stride = strides[a];
    if (in.is_static() || strides[a] == 1) continue;
    dim reach = (size[a] - 1) * dilations[a] + 1, out = (in + stride - dim(1)) / stride;
    dim total = n.b.facts().max((out - dim(1)) * stride + reach - in, 0), smaller = total / dim(2);
    bool upper = automatic == "SAME_UPPER";
    image = n.b.pad_axis(image, static_cast<std::int64_t>(a) + 2, upper ? smaller : total - smaller,
                         upper ? total - smaller : smaller, pad_mode::constant_, fill);
  }
  return image;
}

window window_of(const node& n, const std::vector<dim>& image, std::vector<std::int64_t> size, bool padded) {
  std::size_t axes = size.size();
  if (image.size() != axes + 2)
    invalid("a window of " + std::to_string(axes) + " axes does not fit an image of rank " +
            std::to_string(image.size()));
  window w{std::move(size), spatial_list(n, "strides", axes, 1, 1), spatial_list(n, "dilations", axes, 1, 1), {}, {}};
  std::tie(w.pads_begin, w.pads_end) = explicit_pads(n, axes);
  std::string automatic = one_of(n, "auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  if (automatic == "NOTSET") return w;
  for (std::size_t a = 0; a < axes; ++a) {
    std::int64_t total = 0, reach = (w.size[a] - 1) * w.dilations[a] + 1;
    if (automatic != "VALID") {
      // With a stride of 1 the padding does not depend on the image.
      if (w.strides[a] == 1) total = reach - 1;
      else if (!padded || image[a + 2].is_static()) {
        std::int64_t in = static_dim(image[a + 2], "auto_pad with strides"),
                     out = (in + w.strides[a] - 1) / w.strides[a];
        total = std::max<std::int64_t>(0, (out - 1) * w.strides[a] + reach - in);
      }
    }
    w.pads_begin[a] = automatic == "SAME_LOWER" ? total - total / 2 : total / 2;
    w.pads_end[a] = total - w.pads_begin[a];
  }
  return w;
}

value saturated_f8(builder& b, value x, element_type type) {
  if (!is_float(x.type().type)) x = b.to_type(x, element_type::f32);
  const double most = largest_finite(type);
  value low = b.scalar(x.type().type, type == element_type::f8e8m0 ? 0 : -most), high = b.scalar(x.type().type, most);
  return b.to_type(b.add(elementwise{scalar_function::clamp}, b.broadcast_together({x, low, high})), type);
}

value quantized(builder& b, value x, value zero_point) {
  element_type type = zero_point.type().type;
  value moved =
      b.binary(scalar_function::add, b.unary(scalar_function::round, x), b.to_type(zero_point, x.type().type));
  int bits = storage_bits(type);
  double span = static_cast<double>(std::int64_t{1} << (bits - 1));
  double low = is_signed_integer(type) ? -span : 0, high = is_signed_integer(type) ? span - 1 : 2 * span - 1;
  value limits[] = {b.scalar(x.type().type, low), b.scalar(x.type().type, high)};
  return b.to_type(b.add(elementwise{scalar_function::clamp}, b.broadcast_together({moved, limits[0], limits[1]})),
                   type);
}

}  // namespace kiln::onnx_import
