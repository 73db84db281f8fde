// Convolution and transposed convolution as matrix products: filters × (channels · window) times (channels · window) ×
// output pixels. They differ only in the formula for the input pixel that an output pixel reads through a window
// element.
#include "ir/ops/contraction.hpp"
#include "ir/reference/panel_product.hpp"
#include "ir/reference/parallel.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

constexpr std::int64_t outside = -1;

// Strides of an image or a result: element (n, c, p) is at n * batch + c * channel + p * pixel.
struct image_strides {
  image_strides(tensor_layout layout, std::int64_t channels, std::int64_t pixels)
      : batch(channels * pixels),
        channel(layout == tensor_layout::channels_first ? pixels : 1),
        pixel(layout == tensor_layout::channels_first ? 1 : channels) {}
  std::int64_t batch, channel, pixel;
};

// The parameters that both operations share.
struct problem {
  template <class Op>
  problem(const Op& op, std::span<const literal> inputs, const shape& out, bool transposed) : groups(op.groups) {
    auto image = inputs[0].type().static_dims(), weights = inputs[1].type().static_dims(), result = out.static_dims();
    std::size_t spatial = image.size() - 2;
    bool first = op.layout == tensor_layout::channels_first;
    std::size_t begin = first ? 2 : 1;
    batch = image[0];
    channels = image[first ? 1 : spatial + 1] / groups;
    filters = result[first ? 1 : spatial + 1] / groups;
    for (std::size_t i = 0; i < spatial; ++i) {
      in.push_back(image[begin + i]);
      out_dims.push_back(result[begin + i]);
      window.push_back(weights[first ? 2 + i : i]);
    }
    strides = op.strides, dilations = op.dilations, pads = op.pads_begin;
    // Weight offsets: convolution has [F, C/G, window] or [window, C/G, F]; transposed [C, F/G, window] or [window,
    // F/G, C].
    std::int64_t taps = product(window), inner = transposed ? filters : channels,
                 outer = (transposed ? channels : filters) * groups;
    std::int64_t outer_stride = first ? inner * taps : 1, inner_stride = first ? taps : outer;
    filter_stride = transposed ? inner_stride : outer_stride;
    channel_stride = transposed ? outer_stride : inner_stride;
    group_stride = outer_stride * (transposed ? channels : filters);
    tap_stride = first ? 1 : inner * outer;
  }

  std::int64_t groups, batch, channels, filters;  // channels and filters of one group
  std::vector<std::int64_t> in, out_dims, window, strides, dilations, pads;
  std::int64_t filter_stride, channel_stride, group_stride, tap_stride;
};

// The input pixel (row-major over the spatial axes) that output pixel `pixel` reads through window element `tap`, or
// `outside`.
template <bool Transposed>
std::int64_t source_pixel(const problem& p, std::int64_t pixel, std::int64_t tap) {
  std::int64_t offset = 0, stride = 1;
  for (std::size_t i = p.in.size(); i-- > 0;) {
    std::int64_t o = pixel % p.out_dims[i], w = tap % p.window[i], at;
    pixel /= p.out_dims[i], tap /= p.window[i];
    if constexpr (Transposed) {
      at = o + p.pads[i] - w * p.dilations[i];
      if (at % p.strides[i] != 0) return outside;
      at /= p.strides[i];
    } else {
      at = o * p.strides[i] - p.pads[i] + w * p.dilations[i];
    }
    if (at < 0 || at >= p.in[i]) return outside;
    offset += at * stride;
    stride *= p.in[i];
  }
  return offset;
}

template <bool Transposed, class Sum, class Op>
literal convolve(const Op& op, std::span<const literal> inputs, shape out) {
  problem p(op, inputs, out, Transposed);
  std::int64_t taps = product(p.window), depth = p.channels * taps, pixels = product(p.out_dims);
  image_strides from(op.layout, p.channels * p.groups, product(p.in)), to(op.layout, p.filters * p.groups, pixels);
  auto image = widened<Sum>(inputs[0]);
  auto given = widened<Sum>(inputs[1]);
  std::vector<Sum> weights(given.size());  // [G, F/G, C/G * window]
  Sum* weight = weights.data();
  for (std::int64_t g = 0; g < p.groups; ++g)
    for (std::int64_t f = 0; f < p.filters; ++f)
      for (std::int64_t c = 0; c < p.channels; ++c)
        for (std::int64_t t = 0; t < taps; ++t)
          *weight++ = given[static_cast<std::size_t>(g * p.group_stride + f * p.filter_stride + c * p.channel_stride +
                                                     t * p.tap_stride)];

  std::vector<Sum> sums(static_cast<std::size_t>(p.batch * to.batch));
  std::int64_t panels = panel_count(pixels);
  // Panels are the outer loop, so that the source pixels of a panel are computed once for all groups and images.
  parallel_for(panels, p.batch * p.groups * p.filters * depth * panel_columns,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<Sum> panel;
                 std::vector<std::int64_t> sources(static_cast<std::size_t>(taps * panel_columns));
                 for (std::int64_t i = begin; i < end; ++i) {
                   std::int64_t first_pixel = i * panel_columns, seen = std::min(panel_columns, pixels - first_pixel);
                   for (std::int64_t t = 0; t < taps; ++t)
                     for (std::int64_t c = 0; c < seen; ++c)
                       sources[static_cast<std::size_t>(t * panel_columns + c)] =
                           source_pixel<Transposed>(p, first_pixel + c, t);
                   for (std::int64_t n = 0; n < p.batch; ++n)
                     for (std::int64_t g = 0; g < p.groups; ++g) {
                       const Sum* source =
                           image.empty() ? nullptr : image.data() + n * from.batch + g * p.channels * from.channel;
                       Sum* target = sums.data() + n * to.batch + g * p.filters * to.channel;
                       panel_product(
                           weights.data() + g * p.filters * depth, p.filters, depth, pixels, i, panel,
                           [&](Sum* packed, std::int64_t, std::int64_t width) {
                             for (std::int64_t c = 0; c < p.channels; ++c)
                               for (std::int64_t t = 0; t < taps; ++t, packed += panel_columns)
                                 for (std::int64_t column = 0; column < width; ++column) {
                                   std::int64_t at = sources[static_cast<std::size_t>(t * panel_columns + column)];
                                   packed[column] = at == outside ? Sum(0) : source[c * from.channel + at * from.pixel];
                                 }
                           },
                           [&](std::int64_t row, std::int64_t first, std::int64_t width, const Sum* values) {
                             for (std::int64_t column = 0; column < width; ++column)
                               target[row * to.channel + (first + column) * to.pixel] = values[column];
                           });
                     }
                 }
               });
  return narrowed(std::move(out), sums);
}

template <bool Transposed, class Op>
std::vector<literal> evaluated(const Op& op, std::span<const literal> inputs) {
  shape out = output_shapes(op, inputs)[0];
  return {with_sums_of(inputs[0].type().type, out.type,
                       [&](auto sum) { return convolve<Transposed, decltype(sum)>(op, inputs, out); })};
}

}  // namespace

std::vector<literal> convolution::evaluate(std::span<const literal> inputs) const {
  return evaluated<false>(*this, inputs);
}
std::vector<literal> transposed_convolution::evaluate(std::span<const literal> inputs) const {
  return evaluated<true>(*this, inputs);
}

}  // namespace kiln
