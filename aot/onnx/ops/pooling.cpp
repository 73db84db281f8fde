// Poolings over windows and over whole images.
#include <array>
#include <limits>
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/max_positions.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

pooling pooling_of(node& n, const std::vector<dim>& image, pooling_kind kind, bool padded = false) {
  auto size = n.integers("kernel_shape");
  if (!size || size->empty()) invalid("kernel_shape is missing");
  if (size->size() > 3) refuse("a window of " + std::to_string(size->size()) + " axes; 1 to 3 are supported");
  size = spatial_list(n, "kernel_shape", size->size(), 1, 1);
  window w = window_of(n, image, *size, padded);
  pooling op{kind,
             w.size,
             w.strides,
             w.dilations,
             w.pads_begin,
             w.pads_end,
             n.integer("count_include_pad", 0) != 0,
             n.integer("ceil_mode", 0) != 0,
             tensor_layout::channels_first};
  return op;
}

// The identity of max: the lowest value of the type.
double lowest(element_type type) {
  if (is_float(type)) return -std::numeric_limits<double>::infinity();
  return is_signed_integer(type) ? -static_cast<double>(std::int64_t{1} << (storage_bits(type) - 1)) : 0;
}

// The spatial axes over which a window does something: it has more than one element there, or moves or pads.
std::vector<std::size_t> pooled_axes(node& n, const std::vector<std::int64_t>& size) {
  const auto strides = spatial_list(n, "strides", size.size(), 1, 1);
  const auto [begin, end] = explicit_pads(n, size.size());
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < size.size(); ++i)
    if (size[i] != 1 || strides[i] != 1 || begin[i] != 0 || end[i] != 0) axes.push_back(i);
  return axes;
}

// A window over more axes than a pooling has, of which it leaves some alone: JAX pools [1, 1, N, H, W, C] with windows
// of 1 x 2 x 2 x 1. These axes join the channels. Returns an empty list if the node is no such pooling.
std::vector<value> pool_without_idle_axes(node& n, std::vector<value> (*pool)(node&)) {
  const auto size = n.integers("kernel_shape");
  if (!size || size->size() <= 3 || n.rank(0) != size->size() + 2 || n.wants(1)) return {};
  const auto axes = pooled_axes(n, *size);
  if (axes.empty() || axes.size() > 3) return {};
  builder& b = n.b;
  std::vector<std::int64_t> order{0, 1}, back(n.rank(0));
  std::vector<dim> joined{n.dims(0)[0], n.dims(0)[1]};
  for (std::size_t i = 0; i < size->size(); ++i) {
    if (std::ranges::find(axes, i) != axes.end()) continue;
    order.push_back(static_cast<std::int64_t>(i + 2));
    joined[1] = joined[1] * n.dims(0)[i + 2];
  }
  for (std::size_t i : axes) {
    order.push_back(static_cast<std::int64_t>(i + 2));
    joined.push_back(n.dims(0)[i + 2]);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  ::onnx::NodeProto proto = n.proto;
  for (auto& a : *proto.mutable_attribute()) {
    const bool pads = a.name() == "pads";
    if (!pads && a.name() != "kernel_shape" && a.name() != "strides" && a.name() != "dilations") continue;
    const std::vector<std::int64_t> all(a.ints().begin(), a.ints().end());
    a.clear_ints();
    for (std::size_t half = 0; half < (pads ? 2 : 1); ++half)
      for (std::size_t i : axes) a.add_ints(all.at(half * size->size() + i));
  }
  value turned = b.permuted(n.in(0), order);
  std::vector<dim> dims = turned.type().dims;
  node inner(n.owner, b, proto, n.opset, {b.with_dims(turned, joined)});
  value made = pool(inner).at(0);
  std::ranges::copy(made.type().dims.begin() + 2, made.type().dims.end(),
                    dims.end() - static_cast<std::ptrdiff_t>(axes.size()));
  return {b.permuted(b.with_dims(made, dims), back)};
}

// Averages the windows of the image. If zeros were added to the image (auto_pad and strides on an axis of open size),
// the averages of a padded image of ones tell which part of each window is the image.
value average_of(node& n, const pooling& op) {
  value image = padded_image(n, n.in(0), op.window, 0), mean = n.b.add(op, {image});
  if (image.type().dims == n.dims(0) || op.count_padding) return mean;
  std::vector<dim> one_plane = n.dims(0);
  one_plane[0] = one_plane[1] = 1;
  value ones = n.b.broadcast_to(n.b.scalar(n.type(0).type, 1), one_plane);
  return n.b.binary(fn::div, mean, n.b.add(op, {padded_image(n, ones, op.window, 0)}));
}

template <pooling_kind Kind>
std::vector<value> pool(node& n) {
  if (auto results = pool_without_idle_axes(n, pool<Kind>); !results.empty()) return results;
  pooling op = pooling_of(n, n.dims(0), Kind, true);
  if (Kind != pooling_kind::max) return {average_of(n, op)};
  value image = padded_image(n, n.in(0), op.window, lowest(n.type(0).type));
  value result = n.b.add(op, {image});
  return {result, n.wants(1) ? max_positions(n, op, result.type().dims) : value{}};
}

// inputs: X, its scale and zero point, the result's scale and zero point.
std::vector<value> qlinear_average_pool(node& n) {
  value real = dequantized(n.b, n.in(0), n.in(1), n.has(2) ? n.in(2) : value{});
  bool last = n.integer("channels_last", 0) != 0;
  if (last) real = channels_second(n.b, real);
  value mean = n.b.add(pooling_of(n, real.type().dims, pooling_kind::average), {real});
  if (last) mean = channels_last(n.b, mean);
  return {requantized(n.b, mean, n.in(3), n.has(4) ? n.in(4) : n.b.scalar(n.type(0).type, 0))};
}

// Average of |x|^p over the window, padding included, times the window's size gives the sum.
std::vector<value> lp_pool(node& n) {
  auto p = static_cast<double>(n.integer("p", 2));
  pooling op = pooling_of(n, n.dims(0), pooling_kind::average, true);
  op.count_padding = true;
  auto count = std::accumulate(op.window.begin(), op.window.end(), std::int64_t{1}, std::multiplies<>{});
  value powers = padded_image(n, n.b.binary(fn::pow, n.b.unary(fn::abs, n.in(0)), p), op.window, 0);
  // Zeros behind the image complete the last windows.
  const std::vector<dim> windows = op.ceil_mode ? op.infer(std::array{powers.type()})[0].dims : std::vector<dim>();
  for (std::size_t i = 2; i < windows.size(); ++i) {
    const std::size_t k = i - 2;
    const dim reach = (windows[i] - dim(1)) * dim(op.strides[k]) + dim(op.dilations[k] * (op.window[k] - 1) + 1);
    const dim missing = n.b.facts().max(reach - powers.type().dims.at(i) - dim(op.pads_begin[k] + op.pads_end[k]), 0);
    if (!(missing == dim(0)))
      powers = n.b.pad_axis(powers, static_cast<std::int64_t>(i), 0, missing, pad_mode::constant_, 0);
  }
  op.ceil_mode = false;
  value sums = n.b.binary(fn::mul, n.b.add(op, {powers}), static_cast<double>(count));
  return {n.b.binary(fn::pow, sums, 1 / p)};
}

std::vector<std::int64_t> spatial_axes(node& n) {
  if (n.rank(0) < 3) invalid("an image needs spatial axes, the input is " + n.type(0).str());
  std::vector<std::int64_t> axes(n.rank(0) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

template <reduction_kind Kind>
std::vector<value> global_pool(node& n) {
  return {n.b.reduced(Kind, n.in(0), spatial_axes(n), true)};
}

std::vector<value> global_lp_pool(node& n) {
  auto p = static_cast<double>(n.integer("p", 2));
  value powers = n.b.binary(fn::pow, n.b.unary(fn::abs, n.in(0)), p);
  return {n.b.binary(fn::pow, n.b.reduced(reduction_kind::sum, powers, spatial_axes(n), true), 1 / p)};
}

constexpr operator_row rows[] = {
    {"QLinearAveragePool", qlinear_average_pool, 1, "", microsoft_domain},
    {"MaxPool", pool<pooling_kind::max>, 6, "indices: sizes known at import"},
    {"AveragePool", pool<pooling_kind::average>},
    {"LpPool", lp_pool, 6},
    {"GlobalAveragePool", global_pool<reduction_kind::mean>, 1},
    {"GlobalMaxPool", global_pool<reduction_kind::max>, 1},
    {"GlobalLpPool", global_lp_pool},
};

}  // namespace

std::span<const operator_row> pooling_operators() { return rows; }

}  // namespace kiln::onnx_import
