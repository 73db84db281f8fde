#include "ir/ops/contraction.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/check.hpp"

namespace kiln {
namespace {

using detail::input_check;

bool is_8_bit(element_type type) { return type == element_type::i8 || type == element_type::u8; }

// The accumulator type of a product of a and b, which is also the result type unless the operation specifies another.
// The operands must have the same type, except that signed and unsigned 8-bit integers may be mixed.
element_type product_type(const input_check& check, const shape& a, const shape& b) {
  check.numeric(a);
  if (is_8_bit(a.type) && is_8_bit(b.type)) return element_type::i32;
  check.that(a.type == b.type, "operands differ in element type");
  return a.type;
}

// Positions of the batch, channel and spatial axes, by layout.
struct image_axes {
  explicit image_axes(tensor_layout layout, std::size_t rank)
      : channel(layout == tensor_layout::channels_first ? 1 : rank - 1),
        spatial(layout == tensor_layout::channels_first ? 2 : 1) {}
  std::size_t channel, spatial;
};

// The parts of a weights shape: [outer, inner, window...] (channels_first) or [window..., inner, outer]
// (channels_last).
struct weight_parts {
  weight_parts(const input_check& check, const shape& weights, tensor_layout layout) {
    std::size_t spatial = weights.rank() - 2;
    bool first = layout == tensor_layout::channels_first;
    outer = weights.dims[first ? 0 : spatial + 1];
    inner = weights.dims[first ? 1 : spatial];
    for (std::size_t i = 0; i < spatial; ++i) {
      const dim& d = weights.dims[first ? 2 + i : i];
      check.that(d.is_static(), "the window dimensions of the weights must be static");
      window.push_back(d.value());
    }
  }
  dim outer, inner;
  std::vector<std::int64_t> window;
};

shape check_convolution(const input_check& check, std::span<const shape> inputs, std::int64_t groups) {
  check.arity(2);
  check.that(inputs[0].rank() >= 3 && inputs[0].rank() == inputs[1].rank(),
             "image and weights need the same rank, at least 3");
  check.that(groups > 0, "groups must be positive");
  return {product_type(check, inputs[0], inputs[1]), inputs[0].dims};
}

bool divisible(const dim& d, std::int64_t by) { return !d.is_static() || d.value() % by == 0; }

}  // namespace

std::vector<shape> dot::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(2);
  const auto& a = inputs[0].dims;
  const auto& b = inputs[1].dims;
  check.that(a.size() >= 2 && a.size() == b.size(), "operands need the same rank, at least 2");
  element_type sum = product_type(check, inputs[0], inputs[1]);
  if (is_float(sum) ? !is_float(type) : type != sum) check.reject(fmt::format("cannot give {}", kiln::name(type)));
  if (left_bits != 0 && (left_bits < 8 || left_bits > 64))
    check.reject(fmt::format("cannot round to {} bits", left_bits));
  std::size_t batch = a.size() - 2;
  check.dims_equal({a.begin(), a.begin() + static_cast<std::ptrdiff_t>(batch)},
                   {b.begin(), b.begin() + static_cast<std::ptrdiff_t>(batch)}, "batch dimensions differ");
  const dim& depth_a = a[batch + (transpose_a ? 0 : 1)];
  const dim& depth_b = b[batch + (transpose_b ? 1 : 0)];
  check.equal(depth_a, depth_b, fmt::format("inner dimensions {} and {} differ", depth_a.str(), depth_b.str()));
  shape out{type, {a.begin(), a.begin() + static_cast<std::ptrdiff_t>(batch)}};
  out.dims.push_back(a[batch + (transpose_a ? 1 : 0)]);
  out.dims.push_back(b[batch + (transpose_b ? 0 : 1)]);
  return {out};
}

std::vector<shape> convolution::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  shape out = check_convolution(check, inputs, groups);
  image_axes at(layout, out.rank());
  weight_parts weights(check, inputs[1], layout);
  auto axes = detail::window_axes(check, out.rank() - 2, weights.window, strides, dilations, pads_begin, pads_end);
  const dim& channels = inputs[0].dims[at.channel];
  check.equal(
      weights.inner * dim(groups), channels,
      fmt::format("weights for {} x {} channels meet an image of {}", groups, weights.inner.str(), channels.str()));
  if (!divisible(weights.outer, groups))
    check.reject(fmt::format("{} filters do not divide into {} groups", weights.outer.str(), groups));
  out.dims[at.channel] = weights.outer;
  for (std::size_t i = 0; i < axes.size(); ++i)
    out.dims[at.spatial + i] = detail::window_count(check, inputs[0].dims[at.spatial + i], axes[i], false);
  return {out};
}

std::vector<shape> transposed_convolution::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  shape out = check_convolution(check, inputs, groups);
  image_axes at(layout, out.rank());
  weight_parts weights(check, inputs[1], layout);
  auto axes = detail::window_axes(check, out.rank() - 2, weights.window, strides, dilations, pads_begin, pads_end);
  check.that(output_padding.size() == axes.size(), "output_padding needs one entry per spatial axis");
  const dim& channels = inputs[0].dims[at.channel];
  check.equal(weights.outer, channels,
              fmt::format("weights for {} channels meet an image of {}", weights.outer.str(), channels.str()));
  if (!divisible(channels, groups))
    check.reject(fmt::format("{} channels do not divide into {} groups", channels.str(), groups));
  out.dims[at.channel] = weights.inner * dim(groups);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check.extent(output_padding[i], "output_padding");
    out.dims[at.spatial + i] = dim(axes[i].stride) * (inputs[0].dims[at.spatial + i] - dim(1)) +
                               dim(output_padding[i] + axes[i].extent() - axes[i].pad_begin - axes[i].pad_end);
  }
  return {check.result(out)};
}

}  // namespace kiln
