#include "aot/onnx/ops/resize_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::onnx_import {
namespace {

// Which coordinate of the input the output element `y` shows.
double source_of(const resize& op, const resampling& axis, double y) {
  const auto from = static_cast<double>(axis.from), to = static_cast<double>(axis.to), width = axis.scale * from;
  switch (axis.coordinates) {
    case sampling::half_pixel_for_nearest: return (y + 0.5) / axis.scale;
    case sampling::crop_and_resize: {
      const auto [first, last] = axis.region;
      const double within =
          width == 1 ? (last - first) * (from - 1) / 2 : y * (last - first) * (from - 1) / (width - 1);
      return within + first * (from - 1);
    }
    case sampling::of_operation: break;
  }
  switch (op.coordinates) {
    case resize_coordinates::asymmetric: return y / axis.scale;
    case resize_coordinates::align_corners: return width == 1 ? 0 : y * (from - 1) / (width - 1);
    case resize_coordinates::pytorch_half_pixel: return width == 1 ? -0.5 : (y + 0.5) / axis.scale - 0.5;
    case resize_coordinates::half_pixel_symmetric: return from / 2 * (1 - to / width) + (y + 0.5) / axis.scale - 0.5;
    case resize_coordinates::half_pixel: break;
  }
  return (y + 0.5) / axis.scale - 0.5;
}

// Keys' kernel with coefficient `a`.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The weights of neighbours in a row. `ratio`, in (0, 1], is the distance to the neighbour at the left; the coordinate
// itself when it is a whole number has ratio 1.
std::vector<double> kernel_of(const resize& op, const resampling& axis, double ratio) {
  if (op.mode == resize_mode::nearest) {
    if (ratio == 1) return {0, 1};
    bool right = false;
    switch (op.nearest) {
      case resize_nearest::round_prefer_floor: right = ratio > 0.5; break;
      case resize_nearest::round_prefer_ceil: right = ratio >= 0.5; break;
      case resize_nearest::floor: break;
      case resize_nearest::ceil: right = true; break;
    }
    return {right ? 0.0 : 1.0, right ? 1.0 : 0.0};
  }
  const int reach = op.mode == resize_mode::cubic ? 2 : 1;
  const double shrink = axis.antialias ? std::min(axis.scale, 1.0) : 1;
  const auto begin = static_cast<int>(std::floor(-reach / shrink)) + 1;
  const int end = begin + 2 - 2 * begin;
  std::vector<double> weights;
  for (int i = begin; i < end; ++i) {
    const double x = shrink * (i - ratio);
    weights.push_back(op.mode == resize_mode::cubic ? cubic(x, op.cubic_coefficient) : std::max(0.0, 1 - std::abs(x)));
  }
  if (axis.antialias) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w /= sum;
  }
  return weights;
}

}  // namespace

resampling_weights weights_of(const resize& op, const resampling& axis) {
  resampling_weights result{std::vector<double>(static_cast<std::size_t>(axis.from * axis.to))};
  if (axis.coordinates == sampling::crop_and_resize) result.outside.resize(static_cast<std::size_t>(axis.to));
  for (std::int64_t y = 0; y < axis.to; ++y) {
    const double x = source_of(op, axis, static_cast<double>(y)), left = std::floor(x);
    if (!result.outside.empty() && (x < 0 || x > static_cast<double>(axis.from - 1))) {
      result.outside[static_cast<std::size_t>(y)] = 1;
      continue;
    }
    const bool whole = x == left;
    std::vector<double> kernel = kernel_of(op, axis, whole ? 1 : x - left);
    // The neighbours are the `kernel.size()` elements nearest to x. Of two that are as near, the left one is taken.
    const auto count = static_cast<std::int64_t>(kernel.size());
    const std::int64_t first = static_cast<std::int64_t>(left) - count / 2 + (whole ? 0 : 1);
    auto is_inside = [&](std::int64_t i) { return i >= 0 && i < axis.from; };
    if (op.exclude_outside) {
      double sum = 0;
      for (std::int64_t i = 0; i < count; ++i) sum += is_inside(first + i) ? kernel[static_cast<std::size_t>(i)] : 0;
      for (std::int64_t i = 0; i < count; ++i) {
        double& weight = kernel[static_cast<std::size_t>(i)];
        weight = is_inside(first + i) && sum != 0 ? weight / sum : 0;
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t source = std::clamp<std::int64_t>(first + i, 0, axis.from - 1);
      result.matrix[static_cast<std::size_t>(source * axis.to + y)] += kernel[static_cast<std::size_t>(i)];
    }
  }
  return result;
}

}  // namespace kiln::onnx_import
