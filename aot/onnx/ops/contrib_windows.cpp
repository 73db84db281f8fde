// Operators of onnxruntime's domain that read windows: MaxpoolWithMask and UnfoldTensor.
#include <limits>
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
using numbers = std::vector<std::int64_t>;

// inputs: X [N, C, spatial...], mask like one plane of X. The largest element of each window; within a row of the
// window, only the elements before the first one whose mask is 0 count. onnxruntime always counts the first element of
// a plane of 2 or 3 axes.
std::vector<value> maxpool_with_mask(node& n) {
  builder& b = n.b;
  const auto dims = n.dims(0);
  if (dims.size() < 3 || dims.size() > 5 || n.rank(1) != dims.size())
    invalid("X " + n.type(0).str() + " and the mask " + n.type(1).str() + " do not fit");
  if (n.dims(1)[0] != dim(1) || n.dims(1)[1] != dim(1))
    refuse("a mask " + n.type(1).str() + " is not supported, only one plane for all images and channels");
  const std::size_t axes = dims.size() - 2;
  const numbers size = spatial_list(n, "kernel_shape", axes, 1, 1);
  for (std::size_t k = 0; k < axes; ++k) b.need_equal(n.dims(1)[k + 2], dims[k + 2], "sizes of X and the mask");
  const window w = window_of(n, dims, size);
  pooling op{pooling_kind::max,
             w.size,
             w.strides,
             numbers(axes, 1),
             w.pads_begin,
             w.pads_end,
             false,
             n.integer("ceil_mode", 0) != 0,
             tensor_layout::channels_first};
  const std::vector<dim> result = b.add(op, {n.in(0)}).type().dims;
  value kept = b.binary(fn::equal, n.in(1), 0.0);
  if (axes > 1) {
    value place = b.iota_like(element_type::i64, {n.type(1).elements()}, 0);
    kept = b.binary(fn::logical_and, kept, b.with_dims(b.binary(fn::greater, place, 0.0), n.dims(1)));
  }
  // 1 where the mask stops a row; padding neither stops one nor counts.
  value stops = b.to_type(kept, element_type::i32);
  const double least = -static_cast<double>(std::numeric_limits<float>::max());
  auto padded = [&](value x, double fill) {
    pad padding{numbers(axes + 2, 0), numbers(axes + 2, 0), pad_mode::constant_, fill};
    for (std::size_t k = 0; k < axes; ++k) {
      padding.before[k + 2] = w.pads_begin[k];
      padding.after[k + 2] = w.pads_end[k] + w.strides[k] - 1;  // ceil_mode: less than a stride behind the pads
    }
    return b.add(padding, {x});
  };
  const value image = padded(n.in(0), least), ends = padded(stops, 0);
  const std::int64_t places = std::accumulate(size.begin(), size.end(), std::int64_t{1}, std::multiplies<>{});
  const numbers place_strides = row_major_strides(size);
  auto read = [&](value x, std::int64_t place) {
    std::vector<dim> lengths = result;
    lengths[0] = x.type().dims[0], lengths[1] = x.type().dims[1];
    slice at{numbers(axes + 2, 0), lengths, numbers(axes + 2, 1)};
    for (std::size_t k = 0; k < axes; ++k) {
      at.starts[k + 2] = place / place_strides[k] % size[k];
      at.steps[k + 2] = w.strides[k];
    }
    return b.add(at, {x});
  };
  value largest = b.broadcast_to(b.scalar(n.type(0).type, least), result), stopped;
  for (std::int64_t place = 0; place < places; ++place) {
    const bool begins = place % size.back() == 0;
    stopped = begins ? read(ends, place) : b.binary(fn::max, stopped, read(ends, place));
    value element = b.where(b.binary(fn::equal, stopped, 0.0), read(image, place), b.scalar(n.type(0).type, least));
    largest = b.binary(fn::max, largest, element);
  }
  return {largest};
}

// All windows of `size` elements along an axis, `step` apart; the elements of a window become the last axis.
std::vector<value> unfold_tensor(node& n) {
  builder& b = n.b;
  const std::int64_t axis = n.axis("dim", -1, n.rank(0)), size = n.integer("size", 0), step = n.integer("step", 1);
  if (size < 1 || step < 1 || size > largest_dim || step > largest_dim)
    invalid("size is " + std::to_string(size) + ", step " + std::to_string(step));
  const dim length = n.dims(0)[static_cast<std::size_t>(axis)];
  if (length.is_static() && length.value() < size)
    invalid("windows of " + std::to_string(size) + " elements along an axis of " + length.str());
  const dim count = (length - dim(size)) / dim(step) + dim(1);
  value first = b.binary(fn::mul, b.iota_like(element_type::i64, {count, 1}, 0), static_cast<double>(step));
  value index = b.binary(fn::add, first, b.iota_like(element_type::i64, {1, size}, 1));
  value windows = b.add(gather{axis}, {n.in(0), index});
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(windows.type().rank()); ++i)
    if (i != axis + 1) order.push_back(i);
  order.push_back(axis + 1);
  return {b.permuted(windows, order)};
}

constexpr operator_row rows[] = {
    {"MaxpoolWithMask", maxpool_with_mask, 1, "one mask for all channels", microsoft_domain},
    {"UnfoldTensor", unfold_tensor, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_window_operators() { return rows; }

}  // namespace kiln::onnx_import
