#include "spirv/library/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/code_object.hpp"
#include "ir/error.hpp"
#include "spirv/library/counted_reference.hpp"
#include "spirv/library/library.hpp"

namespace kiln::spirv {
namespace {

// The four pixels around a position in [-1, height] × [-1, width], each multiplied by its weight; zeros outside.
std::array<double, 4> bilinear_parts(std::span<const float> image, std::int64_t height, std::int64_t width, double y,
                                     double x) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) return {};
  auto split = [](double at, std::int64_t size) {
    at = std::clamp(at, 0.0, static_cast<double>(size - 1));
    auto low = static_cast<std::int64_t>(at);
    return std::tuple(low, std::min(low + 1, size - 1), at - static_cast<double>(low));
  };
  auto [y0, y1, fy] = split(y, height);
  auto [x0, x1, fx] = split(x, width);
  auto pixel = [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(image[static_cast<std::size_t>(row * width + column)]);
  };
  return {(1 - fy) * (1 - fx) * pixel(y0, x0), (1 - fy) * fx * pixel(y0, x1), fy * (1 - fx) * pixel(y1, x0),
          fy * fx * pixel(y1, x1)};
}

// ONNX RoiAlign: every bin of a region is the mean (or the largest weighted pixel) of samples. The bin is divided into
// equal parts, and the samples are at their centers.
std::vector<literal> roi_align(const object& o, std::span<const literal> inputs, std::span<const shape> outputs) {
  auto x = inputs[0].as<float>(), regions = inputs[1].as<float>();
  auto images = inputs[2].as<std::int64_t>();
  const std::int64_t count = inputs[0].type().dims[0].value(), channels = inputs[0].type().dims[1].value(),
                     height = inputs[0].type().dims[2].value(), width = inputs[0].type().dims[3].value();
  const std::int64_t out_h = outputs[0].dims[2].value(), out_w = outputs[0].dims[3].value(),
                     samples = attribute_of<std::int64_t>(o, "sampling_ratio");
  const bool shifted = attribute_of<std::int64_t>(o, "opset") >= 16 &&
                       attribute_of<std::string>(o, "coordinate_transformation_mode") == "half_pixel",
             largest = attribute_of<std::string>(o, "mode") == "max";
  const double scale = attribute_of<double>(o, "spatial_scale"), shift = shifted ? 0.5 : 0;
  if (regions.size() != 4 * images.size())
    throw error(error_kind::usage, "RoiAlign: " + std::to_string(regions.size() / 4) + " regions and the images of " +
                                       std::to_string(images.size()));
  std::vector<float> result;
  for (std::size_t r = 0; r < images.size(); ++r) {
    if (images[r] < 0 || images[r] >= count)
      throw error(error_kind::usage, "RoiAlign: region " + std::to_string(r) + " is of image " +
                                         std::to_string(images[r]) + " of " + std::to_string(count));
    auto corner = [&](std::size_t k) { return regions[4 * r + k] * scale - shift; };
    double w = corner(2) - corner(0), h = corner(3) - corner(1);
    if (!shifted) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const double bin_h = h / static_cast<double>(out_h), bin_w = w / static_cast<double>(out_w);
    const std::int64_t steps_y = samples > 0 ? samples : static_cast<std::int64_t>(std::ceil(bin_h)),
                       steps_x = samples > 0 ? samples : static_cast<std::int64_t>(std::ceil(bin_w));
    for (std::int64_t c = 0; c < channels; ++c) {
      auto image = x.subspan(static_cast<std::size_t>((images[r] * channels + c) * height * width),
                             static_cast<std::size_t>(height * width));
      for (std::int64_t bin = 0; bin < out_h * out_w; ++bin) {
        double sum = 0, top = -std::numeric_limits<double>::infinity();
        for (std::int64_t step = 0; step < steps_y * steps_x; ++step) {
          auto place = [](double begin, double size, std::int64_t index, std::int64_t at, std::int64_t steps) {
            return begin +
                   size * (static_cast<double>(index) + (static_cast<double>(at) + 0.5) / static_cast<double>(steps));
          };
          auto parts =
              bilinear_parts(image, height, width, place(corner(1), bin_h, bin / out_w, step / steps_x, steps_y),
                             place(corner(0), bin_w, bin % out_w, step % steps_x, steps_x));
          for (double part : parts) sum += part, top = std::max(top, part);
        }
        const std::int64_t taken = std::max<std::int64_t>(0, steps_y) * std::max<std::int64_t>(0, steps_x);
        result.push_back(static_cast<float>(taken == 0 ? 0 : largest ? top : sum / static_cast<double>(taken)));
      }
    }
  }
  return {literal::of(outputs[0], result)};
}

// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): returns the words
// for a counter, scaled to [0, 1).
std::array<double, 4> philox(std::uint64_t seed, std::uint64_t counter) {
  std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9, k1 += 0xbb67ae85) {
    const std::uint64_t a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
  }
  std::array<double, 4> result;
  std::ranges::transform(c, result.begin(),
                         [](std::uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; });
  return result;
}

template <class Draw>
std::vector<literal> random_numbers(const object& o, const shape& type, Draw draw) {
  const auto seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(attribute_of<double>(o, "seed"))));
  std::vector<float> result(static_cast<std::size_t>(type.element_count()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<float>(draw(philox(seed, i / 4), i % 4));
  return {literal::of(type, result)};
}

std::vector<literal> random_uniform(const object& o, std::span<const literal>, std::span<const shape> outputs) {
  const double low = attribute_of<double>(o, "low"), high = attribute_of<double>(o, "high");
  return random_numbers(
      o, outputs[0], [&](const std::array<double, 4>& words, std::size_t k) { return low + words[k] * (high - low); });
}

// Box-Muller transform: two words give two numbers.
std::vector<literal> random_normal(const object& o, std::span<const literal>, std::span<const shape> outputs) {
  const double mean = attribute_of<double>(o, "mean"), scale = attribute_of<double>(o, "scale");
  return random_numbers(o, outputs[0], [&](const std::array<double, 4>& words, std::size_t k) {
    const std::size_t pair = k & ~std::size_t{1};
    const double radius = std::sqrt(-2 * std::log(1 - words[pair])),
                 angle = 2 * 3.14159265358979323846 * words[pair + 1];
    return mean + scale * radius * (k == pair ? std::cos(angle) : std::sin(angle));
  });
}

struct reference_row {
  std::string_view domain, name;
  std::vector<literal> (*evaluate)(const object& o, std::span<const literal> inputs, std::span<const shape> outputs);
};
constexpr std::array rows{
    reference_row{"", "RoiAlign", roi_align},
    reference_row{"", "RandomUniform", random_uniform},
    reference_row{"", "RandomUniformLike", random_uniform},
    reference_row{"", "RandomNormal", random_normal},
    reference_row{"", "RandomNormalLike", random_normal},
    reference_row{"kiln", "NonZero", non_zero_reference},
    reference_row{"kiln", "Unique", unique_reference},
    reference_row{"kiln", "NonMaxSuppression", non_max_suppression_reference},
    reference_row{"kiln", "DynamicTimeWarping", dynamic_time_warping_reference},
};

bool is_ours(const object& o) {
  return std::ranges::any_of(library(), [&](const object& each) {
    return each.domain == o.domain && each.name == o.name && each.words == o.words;
  });
}

}  // namespace

library_reference find_library_reference(const object& o) {
  auto row =
      std::ranges::find_if(rows, [&](const reference_row& r) { return r.domain == o.domain && r.name == o.name; });
  if (row == rows.end() || !is_ours(o)) return nullptr;
  return [o, evaluate = row->evaluate](std::span<const literal> inputs, std::span<const shape> outputs) {
    return evaluate(o, inputs, outputs);
  };
}

library_reference find_library_reference(const program& source, const instruction& kernel) {
  const auto* c = kernel.op().get_if<code_object>();
  if (!c || c->format != code_format::amdgcnspirv) return nullptr;
  return find_library_reference(deserialize_object(source.kernel(content_hash::from_hex(c->payload))));
}

kernel_runner library_runner(const program& source) {
  return [&source](const instruction& kernel, std::span<const literal> inputs) {
    auto reference = find_library_reference(source, kernel);
    return reference ? reference(inputs, kernel.outputs()) : kernel.op().evaluate(inputs);
  };
}

}  // namespace kiln::spirv
