#include "aot/onnx/ops/slices.hpp"

#include <algorithm>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

// Clamps one bound of a slice to [low, high] for an axis of `size`. A negative bound counts from the end.
dim bound(node& n, dim at, const dim& size, const dim& low, const dim& high) {
  constexpr std::int64_t far = INT32_MAX;
  const dim_facts& facts = n.b.facts();
  if (at.is_static() && at.value() >= far) return high;
  if (at.is_static() && at.value() <= -far) return low;
  if (may_be_negative(n, at, -far)) at = at + size * facts.max(facts.min(dim(0) - at, 1), 0);
  else if (facts.at_least(-1, at)) at = at + size;
  // For some sizes this index counts from the end. Exporters mean the other sizes.
  else if (!facts.at_least(at, 0))
    n.b.need_equal(
        facts.min(at, 0), 0,
        "slices at '" + at.str() + "', which must not be negative; compile the model for these sizes with --dim");
  // An empty axis has high < low if the step is negative. `high` wins, as in ONNX's clamp to [0, size - 1].
  return facts.min(facts.max(at, low), high);
}

// A value as the sum of another one and a number.
struct offset_value {
  value base;
  std::int64_t offset = 0;
};

offset_value as_offset(const builder& b, value v) {
  const auto* e = v.producer->op().get_if<elementwise>();
  if (!e || e->function != scalar_function::add) return {v};
  const auto inputs = v.producer->inputs();
  for (std::size_t side : {0, 1})
    if (auto number = b.uniform(inputs[side]); number && number->is_static() && inputs[1 - side].type() == v.type())
      return {inputs[1 - side], number->value()};
  return {v};
}

// The differences of two vectors of bounds, if the ends are computed as the starts and known numbers.
known_elements distances_between(const builder& b, value starts, value ends) {
  const auto* e = ends.producer->op().get_if<elementwise>();
  if (!e || e->function != scalar_function::add) return {};
  const auto inputs = ends.producer->inputs();
  for (std::size_t side : {0, 1}) {
    const auto numbers = b.known(inputs[side]);
    if (numbers && inputs[1 - side] == starts && inputs[side].type() == starts.type()) return *numbers;
  }
  return {};
}

// Elements [start, end) along one axis. The bounds are i64[1] and are computed when the model runs. If end - start is
// known at import, as `apart` or from how the bounds are computed, the result has that size; otherwise its size is
// bounded.
value sliced_by_data(node& n, value x, std::int64_t axis, value start, value end, std::optional<dim> apart) {
  using fn = scalar_function;
  builder& b = n.b;
  import_state& state = n.owner.state();
  const dim size = x.type().dims.at(static_cast<std::size_t>(axis)), room = capacity_of(state, size);
  const offset_value from = as_offset(b, start), to = as_offset(b, end);
  const value sizes = b.dims_tensor({size}), none = b.integers({0});
  auto clamped = [&](value at) {
    at = b.where(b.binary(fn::less, at, none), b.binary(fn::add, at, sizes), at);
    return b.binary(fn::min, b.binary(fn::max, at, none), sizes);
  };
  value first = clamped(start);
  const bool is_apart = apart && apart->is_static();
  const std::int64_t distance = is_apart ? apart->value() : to.offset - from.offset;
  const bool has_length = (is_apart || from.base == to.base) && distance > 0 && b.facts().at_least(room, distance);
  const dim length = has_length ? dim(distance) : room;
  value places = b.binary(fn::add, first, b.iota_like(element_type::i64, {length}, 0));
  value last = b.binary(fn::max, b.binary(fn::sub, b.data_of(room), 1.0), 0.0);
  value made = b.add(gather{axis}, {x, b.binary(fn::min, places, last)});
  allow_padding(state, made);
  if (has_length) return made;
  // Slices of equal sizes between the same places have the same count.
  auto [count, fresh] = state.slices.try_emplace({start, end, size.str()});
  if (fresh) count->second = b.binary(fn::max, b.binary(fn::sub, clamped(end), first), none);
  return shortened(n, made, axis, count->second);
}

bool is_known(const node& n, std::size_t i) { return n.b.known(n.in(i)).has_value(); }

// A Slice whose starts or ends are computed by the model.
std::vector<value> sliced_by_data(node& n) {
  builder& b = n.b;
  const std::size_t count = static_cast<std::size_t>(static_dim(n.type(1).elements(), "the number of starts"));
  if (count > n.rank(0)) invalid("there are more starts than axes");
  std::vector<std::int64_t> axes;
  if (n.has(3)) axes = n.numbers(3, "axes");
  else
    for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (n.has(4))
    for (std::int64_t step : n.numbers(4, "steps"))
      if (step != 1) refuse("has steps other than 1, and starts or ends that depend on data");
  if (n.rank(1) != 1 || n.type(1).dims != n.type(2).dims || axes.size() != count)
    invalid("starts, ends and axes have different lengths");
  value x = n.in(0), starts = b.to_type(n.in(1), element_type::i64), ends = b.to_type(n.in(2), element_type::i64);
  const known_elements distances = distances_between(b, starts, ends);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool whole = count == 1;
    x = sliced_by_data(n, x, normalize_axis(axes[i], x.type().rank()), whole ? starts : b.slice_axis(starts, 0, at, 1),
                       whole ? ends : b.slice_axis(ends, 0, at, 1),
                       distances.empty() ? std::nullopt : std::optional(distances[i]));
  }
  return {x};
}

}  // namespace

std::vector<value> sliced(node& n) {
  // First ask for the inputs that the bounds depend on; the sizes of the result are then exact.
  const import_state& state = n.owner.state();
  if (n.opset >= 10 && state.values_as_symbols && !(is_known(n, 1) && is_known(n, 2)) &&
      !(state.data_decides_sizes && is_known(n, 1)))
    return sliced_by_data(n);
  value x = n.in(0);
  const auto dims = x.type().dims;
  known_elements starts, ends;
  std::vector<std::int64_t> axes, steps;
  auto widened = [](const std::vector<std::int64_t>& list) { return known_elements(list.begin(), list.end()); };
  if (n.opset < 10) {
    starts = widened(n.integers("starts").value_or(std::vector<std::int64_t>{}));
    ends = widened(n.integers("ends").value_or(std::vector<std::int64_t>{}));
    axes = n.integers("axes").value_or(std::vector<std::int64_t>{});
  } else {
    starts = n.known(1, "starts");
    ends = n.known(2, "ends");
    if (n.has(3)) axes = n.numbers(3, "axes");
    if (n.has(4)) steps = n.numbers(4, "steps");
  }
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    invalid("starts, ends, axes and steps have different lengths");
  const dim_facts& facts = n.b.facts();
  slice op{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
  std::vector<std::pair<std::int64_t, dim>> moved;  // axes with a symbolic start
  bool moves = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<std::size_t>(normalize_axis(axes[i], dims.size()));
    const dim& size = dims.at(axis);
    std::int64_t step = steps[i];
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
      invalid("step " + std::to_string(step) + " is out of range");
    const dim high = step < 0 ? size - dim(1) : size;
    dim start = bound(n, starts[i], size, 0, high), end = bound(n, ends[i], size, step < 0 ? -1 : 0, high);
    dim span = facts.max(step > 0 ? end - start : start - end, 0);
    std::int64_t stride = std::abs(step);
    op.lengths[axis] = stride == 1 ? span : (span + dim(stride - 1)) / dim(stride);
    op.steps[axis] = step;
    // The start of an empty slice does not matter.
    if (op.lengths[axis] == dim(0)) start = 0;
    if (start.is_static()) op.starts[axis] = start.value();
    else moved.emplace_back(static_cast<std::int64_t>(axis), start);
    moves |= op.starts[axis] != 0 || step != 1 || !(op.lengths[axis] == size);
  }
  for (const auto& [axis, start] : moved) {
    auto at = static_cast<std::size_t>(axis);
    dim& length = op.lengths[at];
    const bool counted = is_bounded(length) && !grows_with_counts(length);
    x = counted ? shortened_from(n, x, axis, start, length, op.steps[at])
                : n.b.slice_from(x, axis, start, length, op.steps[at]);
    length = x.type().dims.at(at);
    op.starts[at] = 0;
    op.steps[at] = 1;
  }
  return {moves && !(op.lengths == x.type().dims && op.steps == std::vector<std::int64_t>(dims.size(), 1))
              ? n.b.add(std::move(op), {x})
              : x};
}

std::vector<value> parts_of(builder& b, value x, std::int64_t axis, const std::vector<dim>& lengths) {
  std::vector<value> parts;
  dim start = 0;
  for (const dim& length : lengths) {
    parts.push_back(length == dim(0) ? b.slice_axis(x, axis, 0, length) : b.slice_from(x, axis, start, length, 1));
    start = start + length;
  }
  return parts;
}

std::vector<value> split_into(node& n, value x, std::int64_t axis, const std::vector<dim>& lengths) {
  const dim& size = x.type().dims.at(static_cast<std::size_t>(axis));
  dim total = 0;
  for (const dim& length : lengths) {
    if (length.is_static() && length.value() < 0) invalid("a part has the negative length " + length.str());
    total = total + length;
  }
  n.b.need_equal(total, size, "the parts add up to " + total.str() + ", the axis has " + size.str());
  return parts_of(n.b, x, axis, lengths);
}

}  // namespace kiln::onnx_import
