// Pooling. The input pixels of every output pixel are found once and then used for every image and channel.
#include "ir/ops/reduction.hpp"

#include <limits>

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

// The input pixels under each output pixel's window: pixel i covers pixels[first[i]] to pixels[first[i + 1]]
// (exclusive). `counted` is the divisor of an average. With count_padding it counts every window element inside the
// padded image, but not the overhang of ceil_mode.
struct coverage {
  std::vector<std::int64_t> first{0}, pixels;
  std::vector<double> counted;
};

coverage covered(const pooling& op, const std::vector<std::int64_t>& in, const std::vector<std::int64_t>& out) {
  coverage result;
  std::int64_t out_pixels = product(out), taps = product(op.window);
  for (std::int64_t pixel = 0; pixel < out_pixels; ++pixel) {
    std::int64_t counted = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      bool inside = true, padded = true;
      std::int64_t offset = 0, stride = 1;
      for (std::size_t i = in.size(), p = static_cast<std::size_t>(pixel), t = static_cast<std::size_t>(tap);
           i-- > 0;) {
        auto extent = static_cast<std::size_t>(out[i]), window = static_cast<std::size_t>(op.window[i]);
        std::int64_t at = static_cast<std::int64_t>(p % extent) * op.strides[i] - op.pads_begin[i] +
                          static_cast<std::int64_t>(t % window) * op.dilations[i];
        p /= extent, t /= window;
        inside = inside && at >= 0 && at < in[i];
        padded = padded && at < in[i] + op.pads_end[i];
        offset += at * stride;
        stride *= in[i];
      }
      if (inside) result.pixels.push_back(offset);
      counted += op.count_padding ? padded : inside;
    }
    result.first.push_back(static_cast<std::int64_t>(result.pixels.size()));
    result.counted.push_back(static_cast<double>(counted));
  }
  return result;
}

}  // namespace

std::vector<literal> pooling::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto dims = inputs[0].type().static_dims(), to_dims = out.static_dims();
  std::size_t spatial = window.size();
  bool channels_first = layout == tensor_layout::channels_first;
  std::int64_t channels = channels_first ? dims[1] : dims[spatial + 1];
  auto begin_axis = static_cast<std::ptrdiff_t>(channels_first ? 2 : 1),
       end_axis = begin_axis + static_cast<std::ptrdiff_t>(spatial);
  std::vector<std::int64_t> in(dims.begin() + begin_axis, dims.begin() + end_axis),
      result(to_dims.begin() + begin_axis, to_dims.begin() + end_axis);
  std::int64_t in_pixels = product(in), out_pixels = product(result);
  coverage seen = covered(*this, in, result);

  std::vector<std::byte> bytes(out.bytes());
  visit_type(out.type, [&](auto format) {
    using Format = decltype(format);
    using T = typename Format::compute;
    const auto* from = inputs[0].as<typename Format::storage>().data();
    auto* to = data<typename Format::storage>(bytes);
    parallel_for(
        dims[0] * channels, static_cast<std::int64_t>(seen.pixels.size()), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t plane = begin; plane < end; ++plane) {
            std::int64_t n = plane / channels, c = plane % channels;
            std::int64_t channel_in = channels_first ? c * in_pixels : c,
                         channel_out = channels_first ? c * out_pixels : c;
            std::int64_t step = channels_first ? 1 : channels;
            const auto* image = from + n * channels * in_pixels + channel_in;
            auto* pooled = to + n * channels * out_pixels + channel_out;
            for (std::int64_t p = 0; p < out_pixels; ++p) {
              std::int64_t first = seen.first[static_cast<std::size_t>(p)],
                           last = seen.first[static_cast<std::size_t>(p) + 1];
              T value;
              if (kind == pooling_kind::max) {
                value = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();
                for (std::int64_t i = first; i < last; ++i)
                  value = larger(value, Format::load(image[seen.pixels[static_cast<std::size_t>(i)] * step]));
              } else {
                double sum = 0;
                for (std::int64_t i = first; i < last; ++i)
                  sum += static_cast<double>(Format::load(image[seen.pixels[static_cast<std::size_t>(i)] * step]));
                value = cast<T>(sum / seen.counted[static_cast<std::size_t>(p)]);
              }
              pooled[p * step] = Format::store(value);
            }
          }
        });
  });
  return {literal(std::move(out), std::move(bytes))};
}

}  // namespace kiln
