#include "aot/onnx/ops/slices.hpp"

#include <algorithm>
#include <cmath>

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

// Whether a slice with this step takes one element: tf2onnx writes x[i] as a slice from i to the end whose step is 1e9.
// No axis is that long.
constexpr std::int64_t least_for_one = 1'000'000'000;
bool takes_one(std::int64_t step) { return step >= least_for_one; }

// What is known about single elements of a vector whose other elements the model computes. tf2onnx computes the bounds
// of all axes together, and those of most axes are numbers.
class element_facts {
 public:
  explicit element_facts(const builder& b) : b_(b) {}

  std::optional<dim> value_of(value v, std::int64_t at) const {
    if (const auto all = b_.known(v)) return at < size_of(*all) ? std::optional(all->at(at)) : std::nullopt;
    if (const auto each = b_.uniform(v)) return *each;
    if (const auto all = b_.constant_of(v)) return whole_number(*all, at);
    if (v.index != 0 || v.type().rank() != 1) return std::nullopt;
    const instruction& i = *v.producer;
    const auto inputs = i.inputs();
    if (i.op().is<convert>()) {
      const auto element = value_of(inputs[0], at);
      return is_integer(v.type().type) || (element && element->is_static()) ? element : std::nullopt;
    }
    if (i.op().is<broadcast>() && inputs[0].type().elements() == dim(1)) return value_of(inputs[0], 0);
    if (i.op().is<concat>()) {
      const value part = part_with(i, at);
      return part ? value_of(part, at) : std::nullopt;
    }
    const auto* e = i.op().get_if<elementwise>();
    if (!e) return std::nullopt;
    if (e->function == fn::where) {
      const auto condition = truth_of(inputs[0], at);
      return condition ? value_of(inputs[*condition ? 1 : 2], at) : std::nullopt;
    }
    if (e->function != fn::max && e->function != fn::min) return std::nullopt;
    const auto left = value_of(inputs[0], at), right = value_of(inputs[1], at);
    if (!left || !right) return std::nullopt;
    return e->function == fn::max ? b_.facts().max(*left, *right) : b_.facts().min(*left, *right);
  }

  // Whether the element is `least` or more.
  bool at_least(value v, std::int64_t at, std::int64_t least) const {
    if (const auto element = value_of(v, at)) return b_.facts().at_least(*element, least);
    const auto inputs = v.producer->inputs();
    if (v.producer->op().is<convert>()) return at_least(inputs[0], at, least);
    if (v.producer->op().is<concat>()) {
      const value part = part_with(*v.producer, at);
      return part && at_least(part, at, least);
    }
    const auto* e = v.producer->op().get_if<elementwise>();
    return e && e->function == fn::max && (at_least(inputs[0], at, least) || at_least(inputs[1], at, least));
  }

 private:
  using fn = scalar_function;

  // The part of a joined vector that holds the element; `at` becomes the place in it. Empty if sizes are not known.
  static value part_with(const instruction& joined, std::int64_t& at) {
    for (value part : joined.inputs()) {
      const dim length = part.type().elements();
      if (!length.is_static()) return {};
      if (at < length.value()) return part;
      at -= length.value();
    }
    return {};
  }

  static std::int64_t size_of(const known_elements& all) { return static_cast<std::int64_t>(all.size()); }

  static std::optional<dim> whole_number(const literal& all, std::int64_t at) {
    constexpr double exact = 0x1p53;
    if (at >= all.type().element_count()) return std::nullopt;
    const double number = all.at(at);
    return std::abs(number) < exact && std::floor(number) == number
               ? std::optional<dim>(static_cast<std::int64_t>(number))
               : std::nullopt;
  }

  std::optional<bool> truth_of(value v, std::int64_t at) const {
    if (const auto all = b_.constant_of(v)) {
      const std::int64_t count = all->type().element_count();
      if (count == 1 || at < count) return all->at_int(count == 1 ? 0 : at) != 0;
      return std::nullopt;
    }
    const auto inputs = v.producer->inputs();
    if (v.producer->op().is<broadcast>() && inputs[0].type().elements() == dim(1)) return truth_of(inputs[0], 0);
    const auto* e = v.producer->op().get_if<elementwise>();
    if (!e || e->function != fn::logical_and) return std::nullopt;
    const auto left = truth_of(inputs[0], at), right = truth_of(inputs[1], at);
    if ((left && !*left) || (right && !*right)) return false;
    return left && right ? std::optional(true) : std::nullopt;
  }

  const builder& b_;
};

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
  const element_facts elements(b);
  std::vector<std::int64_t> steps(count, 1);
  for (std::size_t i = 0; n.has(4) && i < count; ++i)
    if (elements.at_least(n.in(4), static_cast<std::int64_t>(i), least_for_one)) steps[i] = least_for_one;
    else if (const auto step = elements.value_of(n.in(4), static_cast<std::int64_t>(i)); step && step->is_static())
      steps[i] = step->value();
    else steps = n.numbers(4, "steps");
  if (n.rank(1) != 1 || n.type(1).dims != n.type(2).dims || axes.size() != count || steps.size() != count)
    invalid("starts, ends, axes and steps have different lengths");
  value x = n.in(0), starts = b.to_type(n.in(1), element_type::i64), ends = b.to_type(n.in(2), element_type::i64);
  const known_elements distances = distances_between(b, starts, ends);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool whole = count == 1;
    const std::int64_t axis = normalize_axis(axes[i], x.type().rank());
    const auto first = elements.value_of(starts, at), end = elements.value_of(ends, at);
    if (first && end && steps[i] == 1) {
      const dim size = x.type().dims.at(static_cast<std::size_t>(axis));
      const dim from = bound(n, *first, size, 0, size), to = bound(n, *end, size, 0, size);
      const dim length = b.facts().max(to - from, 0);
      if (!(length == size)) x = b.slice_from(x, axis, from, length, 1);
      continue;
    }
    auto apart = distances.empty() ? std::nullopt : std::optional(distances[i]);
    if (steps[i] != 1) {
      if (!takes_one(steps[i])) refuse("has steps other than 1, and starts or ends that depend on data");
      apart = 1;
    }
    x = sliced_by_data(n, x, axis, whole ? starts : b.slice_axis(starts, 0, at, 1),
                       whole ? ends : b.slice_axis(ends, 0, at, 1), apart);
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
    op.lengths[axis] = stride == 1       ? span
                       : takes_one(step) ? facts.min(span, 1)
                                         : (span + dim(stride - 1)) / dim(stride);
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
