// GridSample on images of 2 or 3 spatial axes: computes coordinates and weights with elementwise operations and uses
// one gather for each neighbour.
#include <array>
#include <cmath>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
enum class padding { zeros, border, reflection };

// One axis of the image: its size and last coordinate, and the interval for reflection. All are f32 scalars, so that
// the size may be open.
struct image_axis {
  value size, last, low, high;
  bool has_span;  // high > low is known
};

image_axis axis_of(builder& b, const dim& size, bool corners) {
  auto extent = b.to_type(b.data_of(size), element_type::f32);
  value last = b.binary(fn::sub, extent, 1.0);
  if (corners) return {extent, last, b.scalar(element_type::f32, 0), last, b.facts().at_least(size, 2)};
  return {extent, last, b.scalar(element_type::f32, -0.5), b.binary(fn::sub, extent, 0.5), true};
}

value clamped(builder& b, value x, value low, value high) {
  return b.add(elementwise{fn::clamp}, b.broadcast_together({x, low, high}));
}

// Reflects x into [low, high] like a triangle wave.
value reflected(builder& b, value x, const image_axis& a) {
  value period = b.binary(fn::mul, b.binary(fn::sub, a.high, a.low), 2.0);
  // An axis of one element has no span. Any period serves, because the result is clamped to that element.
  if (!a.has_span) period = b.binary(fn::max, period, 1.0);
  value phase = b.binary(fn::fmod, b.unary(fn::abs, b.binary(fn::sub, x, a.low)), period);
  value wave = b.binary(fn::add, b.binary(fn::min, phase, b.binary(fn::sub, period, phase)), a.low);
  return a.has_span ? wave : b.binary(fn::min, wave, a.high);
}

value padded_coordinate(builder& b, value x, const image_axis& a, padding mode) {
  if (mode == padding::zeros) return x;
  value zero = b.scalar(x.type().type, 0);
  value inside = mode == padding::border ? clamped(b, x, zero, a.last) : reflected(b, x, a);
  value within = b.binary(fn::logical_and, b.binary(fn::greater_equal, x, a.low), b.binary(fn::less_equal, x, a.high));
  return b.where(within, x, inside);
}

// Weights of the neighbours at offsets first, first + 1, ... of the cell that contains x.
std::vector<value> weights_of(builder& b, value fraction, const std::string& mode) {
  value one = b.scalar(fraction.type().type, 1), rest = b.binary(fn::sub, one, fraction);
  if (mode == "nearest") return {b.broadcast_to(one, fraction.type().dims)};
  if (mode == "linear") return {rest, fraction};
  constexpr double a = -0.75;  // Keys' cubic convolution
  auto polynomial = [&](value x, std::array<double, 4> c) {
    value sum = b.scalar(x.type().type, c[0]);
    for (int i = 1; i < 4; ++i) sum = b.binary(fn::add, b.binary(fn::mul, sum, x), c[static_cast<std::size_t>(i)]);
    return sum;
  };
  auto near = [&](value x) { return polynomial(x, {a + 2, -(a + 3), 0, 1}); };
  auto far = [&](value x) { return polynomial(b.binary(fn::add, x, 1.0), {a, -5 * a, 8 * a, -4 * a}); };
  return {far(fraction), near(fraction), near(rest), far(rest)};
}

std::vector<value> grid_sample(node& n) {
  builder& b = n.b;
  value x = n.in(0), grid = n.in(1);
  const std::size_t axes_count = x.type().rank() - 2;
  if (x.type().rank() < 4 || x.type().rank() > 5 || grid.type().rank() != x.type().rank())
    refuse("only images of 2 or 3 spatial axes are supported, not " + x.type().str());
  std::string mode = n.text("mode", n.opset < 20 ? "bilinear" : "linear");
  if (mode.starts_with("bi")) mode = mode.substr(2);
  require_one_of("mode", mode, std::array<std::string_view, 3>{"nearest", "linear", "cubic"});
  if (mode == "cubic" && axes_count != 2) refuse("mode cubic is defined for images of 2 spatial axes only");
  std::string pads = one_of(n, "padding_mode", "zeros", {"zeros", "border", "reflection"});
  padding pad_with = pads == "zeros" ? padding::zeros : pads == "border" ? padding::border : padding::reflection;
  bool corners = n.integer("align_corners", 0) != 0;
  const auto dims = x.type().dims;
  const dim batch = dims.at(0), channels = dims.at(1);
  dim points = 1, pixels = 1;
  std::vector<std::int64_t> channels_last{0};
  for (std::size_t k = 0; k < axes_count; ++k) {
    points = points * grid.type().dims.at(k + 1);
    pixels = pixels * dims.at(k + 2);
    channels_last.push_back(static_cast<std::int64_t>(k) + 2);
  }
  channels_last.push_back(1);
  const std::string misfit = "the grid " + grid.type().str() + " does not fit " + x.type().str();
  b.need_equal(grid.type().dims.back(), static_cast<std::int64_t>(axes_count), misfit);
  b.need_equal(grid.type().dims.at(0), batch, misfit);
  value table = b.with_dims(b.permuted(x, channels_last), {batch, pixels, channels});
  grid = b.to_type(b.with_dims(grid, {batch, points, static_cast<std::int64_t>(axes_count)}), element_type::f32);
  // One entry per spatial axis of the image. The grid stores coordinates in reverse order (x first).
  std::vector<image_axis> axes;
  std::vector<value> cells;  // the integer coordinate of the first neighbour
  std::vector<std::vector<value>> weights;
  for (std::size_t k = 0; k < axes_count; ++k) {
    if (b.facts().at_least(0, dims.at(2 + k))) invalid("the image " + x.type().str() + " is empty");
    axes.push_back(axis_of(b, dims.at(2 + k), corners));
    value g = b.with_dims(b.slice_axis(grid, 2, static_cast<std::int64_t>(axes_count - 1 - k), 1), {batch, points});
    value at = corners
                   ? b.binary(fn::mul, b.binary(fn::add, g, 1.0), b.binary(fn::mul, axes[k].last, 0.5))
                   : b.binary(fn::mul,
                              b.binary(fn::sub, b.binary(fn::mul, b.binary(fn::add, g, 1.0), axes[k].size), 1.0), 0.5);
    if (mode == "nearest") at = b.unary(fn::round, at);
    // For cubic interpolation, torch and onnxruntime apply the padding mode to each neighbour, not to the sampled
    // point.
    if (mode != "cubic") at = padded_coordinate(b, at, axes[k], pad_with);
    value cell = mode == "nearest" ? b.unary(fn::round, at) : b.unary(fn::floor, at);
    weights.push_back(weights_of(b, b.binary(fn::sub, at, cell), mode));
    cells.push_back(mode == "cubic" ? b.binary(fn::sub, cell, 1.0) : cell);
  }
  std::size_t neighbours = 1;
  for (const auto& w : weights) neighbours *= w.size();
  value sum;
  for (std::size_t neighbour = 0; neighbour < neighbours; ++neighbour) {
    value weight, index;
    std::size_t rest = neighbour, combinations = neighbours;
    for (std::size_t k = 0; k < axes_count; ++k) {
      combinations /= weights[k].size();
      const std::size_t offset = rest / combinations;
      rest %= combinations;
      value at = b.binary(fn::add, cells[k], static_cast<double>(offset)), share = weights[k][offset];
      value zero = b.scalar(element_type::f32, 0);
      value inside = clamped(b, at, zero, axes[k].last);
      if (pad_with == padding::zeros)
        share = b.where(b.binary(fn::equal, inside, at), share, b.scalar(element_type::f32, 0));
      if (pad_with == padding::reflection) inside = clamped(b, reflected(b, at, axes[k]), zero, axes[k].last);
      value whole = b.to_type(inside, element_type::i64);
      weight = weight ? b.binary(fn::mul, weight, share) : share;
      value pitch = b.data_of(dims.at(2 + k));
      index = index ? b.binary(fn::add, b.binary(fn::mul, index, pitch), whole) : whole;
    }
    value taken = b.add(gather_nd{1}, {table, b.with_dims(index, {batch, points, 1})});
    value part = b.binary(fn::mul, b.to_type(taken, element_type::f32), b.with_dims(weight, {batch, points, 1}));
    sum = sum ? b.binary(fn::add, sum, part) : part;
  }
  std::vector<dim> result{batch, channels};
  result.insert(result.end(), n.dims(1).begin() + 1, n.dims(1).end() - 1);
  value image = b.with_dims(b.permuted(sum, {0, 2, 1}), result);
  return {b.to_type(image, x.type().type)};
}

constexpr operator_row rows[] = {{"GridSample", grid_sample, 16, "2 or 3 spatial axes"}};

}  // namespace

std::span<const operator_row> grid_sample_operators() { return rows; }

}  // namespace kiln::onnx_import
