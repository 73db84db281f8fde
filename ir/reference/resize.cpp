#include "ir/reference/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/reference/tensor.hpp"

namespace kiln {
namespace reference {
namespace {

float source_coordinate(resize_coordinates rule, float x, float scale, float in, float out) {
  switch (rule) {
    case resize_coordinates::half_pixel: return (x + 0.5f) / scale - 0.5f;
    case resize_coordinates::pytorch_half_pixel: return out > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
    case resize_coordinates::align_corners: return out > 1 ? x * (in - 1) / (out - 1) : 0.0f;
    case resize_coordinates::asymmetric: return x / scale;
    case resize_coordinates::half_pixel_symmetric: {
      float adjustment = out / (scale * in);
      return in / 2 * (1 - adjustment) + (x + 0.5f) / scale - 0.5f;
    }
  }
  return x;
}

std::int64_t nearest_index(resize_nearest rule, float x) {
  switch (rule) {
    case resize_nearest::round_prefer_floor: return static_cast<std::int64_t>(std::ceil(x - 0.5f));
    case resize_nearest::round_prefer_ceil: return static_cast<std::int64_t>(std::floor(x + 0.5f));
    case resize_nearest::floor: return static_cast<std::int64_t>(std::floor(x));
    case resize_nearest::ceil: return static_cast<std::int64_t>(std::ceil(x));
  }
  return 0;
}

// Keys' kernel at distances 1 + t, t, 1 - t and 2 - t (R. Keys, "Cubic convolution interpolation", 1981).
std::array<double, 4> cubic_weights(double a, double t) {
  auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

}  // namespace

std::vector<std::vector<resize_tap>> resize_taps(const resize& op, double scale, std::int64_t in, std::int64_t out) {
  std::vector<std::vector<resize_tap>> result;
  for (std::int64_t i = 0; i < out; ++i) {
    float x = source_coordinate(op.coordinates, static_cast<float>(i), static_cast<float>(scale),
                                static_cast<float>(in), static_cast<float>(out));
    double t = static_cast<double>(x) - std::floor(x);
    auto base = static_cast<std::int64_t>(std::floor(x));
    std::vector<resize_tap> taps;
    switch (op.mode) {
      case resize_mode::nearest: taps = {{nearest_index(op.nearest, x), 1}}; break;
      case resize_mode::linear: taps = {{base, 1 - t}, {base + 1, t}}; break;
      case resize_mode::cubic: {
        auto w = cubic_weights(op.cubic_coefficient, t);
        for (int j = 0; j < 4; ++j) taps.push_back({base - 1 + j, w[static_cast<std::size_t>(j)]});
        break;
      }
    }
    auto outside = [in](const resize_tap& tap) { return tap.index < 0 || tap.index >= in; };
    if (op.exclude_outside && op.mode != resize_mode::nearest) {
      double inside = 0;
      for (resize_tap& tap : taps) inside += outside(tap) ? tap.weight = 0 : tap.weight;
      for (resize_tap& tap : taps) tap.weight /= inside;
    }
    for (resize_tap& tap : taps) tap.index = std::clamp<std::int64_t>(tap.index, 0, in - 1);
    std::erase_if(taps, [](const resize_tap& tap) { return tap.weight == 0; });
    result.push_back(std::move(taps));
  }
  return result;
}

}  // namespace reference

namespace {

using namespace reference;

// Resizes `from` along one axis with `taps`.
template <class T>
std::vector<T> along_axis(const std::vector<T>& from, const axis_view& view,
                          const std::vector<std::vector<resize_tap>>& taps) {
  auto length = static_cast<std::int64_t>(taps.size());
  std::vector<T> to(static_cast<std::size_t>(view.outer * length * view.inner), T(0));
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < length; ++i)
      for (const resize_tap& tap : taps[static_cast<std::size_t>(i)]) {
        const T* source = from.data() + (o * view.length + tap.index) * view.inner;
        T* target = to.data() + (o * length + i) * view.inner;
        if (tap.weight == 1)
          std::transform(source, source + view.inner, target, target, [](T s, T t) { return static_cast<T>(s + t); });
        else
          for (std::int64_t n = 0; n < view.inner; ++n)
            target[n] += static_cast<T>(static_cast<double>(source[n]) * tap.weight);
      }
  return to;
}

// Integers stay exact for nearest and are converted to double otherwise.
template <class T>
literal resized(const resize& op, const literal& input, shape out) {
  auto dims = input.type().static_dims(), target = out.static_dims();
  auto values = widened<T>(input);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    double scale = op.scale(i, dims[i], target[i]);
    if (dims[i] == target[i] && scale == 1) continue;
    values =
        along_axis(values, axis_view(dims, static_cast<std::int64_t>(i)), resize_taps(op, scale, dims[i], target[i]));
    dims[i] = target[i];
  }
  return narrowed(std::move(out), values);
}

}  // namespace

std::vector<literal> resize::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  bool exact_integers = mode == resize_mode::nearest && !is_float(out.type);
  return {exact_integers ? resized<std::uint64_t>(*this, inputs[0], std::move(out))
                         : resized<double>(*this, inputs[0], std::move(out))};
}

}  // namespace kiln
