#include "ir/ops/reduction.hpp"

#include <algorithm>

#include "ir/ops/check.hpp"

namespace kiln {
namespace {

using detail::input_check;

shape without_axes(const shape& input, const std::vector<std::int64_t>& axes, bool keep_dims) {
  shape out{input.type, {}};
  for (std::size_t i = 0; i < input.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i))) out.dims.push_back(input.dims[i]);
    else if (keep_dims) out.dims.push_back(1);
  }
  return out;
}

}  // namespace

std::vector<shape> reduce::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.axes(axes, inputs[0].rank());
  bool ordered = kind == reduction_kind::max || kind == reduction_kind::min;
  if (!(ordered && inputs[0].type == element_type::boolean)) check.numeric(inputs[0]);
  return {without_axes(inputs[0], axes, keep_dims)};
}

std::vector<shape> arg_reduce::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.numeric(inputs[0]);
  auto along = check.axis(axis, inputs[0].rank());
  check.that(!(inputs[0].dims[static_cast<std::size_t>(along)] == dim(0)),
             "an empty axis has no largest or smallest element");
  return {without_axes(inputs[0], {along}, keep_dims).with_type(element_type::i64)};
}

std::vector<shape> pooling::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  if (kind == pooling_kind::average) check.floating(inputs[0]);
  else check.numeric(inputs[0]);
  check.that(inputs[0].rank() >= 3, "needs an image of rank 3 to 5");
  auto axes = detail::window_axes(check, inputs[0].rank() - 2, window, strides, dilations, pads_begin, pads_end);
  std::size_t spatial = layout == tensor_layout::channels_first ? 2 : 1;
  shape out = inputs[0];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check.that(!(inputs[0].dims[spatial + i] == dim(0)), "an empty image has nothing to pool");
    out.dims[spatial + i] = detail::window_count(check, inputs[0].dims[spatial + i], axes[i], ceil_mode);
  }
  return {out};
}

std::vector<shape> softmax::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.floating(inputs[0]);
  check.axis(axis, inputs[0].rank());
  return {inputs[0]};
}

std::vector<shape> normalize::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.floating(inputs[0]);
  check.that(!axes.empty(), "needs at least one axis");
  check.axes(axes, inputs[0].rank());
  return {inputs[0]};
}

std::vector<shape> cumulative_sum::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.numeric(inputs[0]);
  check.axis(axis, inputs[0].rank());
  return {inputs[0]};
}

}  // namespace kiln
