#include "ir/ops/check.hpp"

#include <fmt/format.h>

#include "ir/dims_differ.hpp"

namespace kiln::detail {

std::string input_check::message(std::string_view why) const {
  std::string shapes;
  for (const shape& input : inputs_) shapes += (shapes.empty() ? "" : ", ") + input.str();
  return fmt::format("{}({}): {}", operation_, shapes, why);
}

void input_check::reject(std::string_view why) const { throw error(error_kind::invalid_model, message(why)); }

void input_check::arity(std::size_t count) const {
  if (inputs_.size() != count) reject(fmt::format("takes {} inputs, {} were given", count, inputs_.size()));
}

std::int64_t input_check::axis(std::int64_t axis, std::size_t rank) const {
  auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) reject(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + r : axis;
}

void input_check::axes(const std::vector<std::int64_t>& axes, std::size_t rank) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= static_cast<std::int64_t>(rank))
      reject(fmt::format("axis {} is outside a tensor of rank {}", axes[i], rank));
    if (i && axes[i] <= axes[i - 1]) reject("axes must be sorted and distinct");
  }
}

void input_check::index_type(const shape& indices) const {
  that(indices.type == element_type::i32 || indices.type == element_type::i64, "indices must be i32 or i64");
}

void input_check::numeric(const shape& operand) const {
  that(operand.type != element_type::boolean && storage_bits(operand.type) >= 8,
       "cannot compute with this element type; convert it first");
}

void input_check::floating(const shape& operand) const {
  that(is_float(operand.type), "needs a floating-point operand; convert it first");
}

void input_check::equal(const dim& a, const dim& b, std::string_view why) const {
  if (a == b) return;
  if ((a - b).is_static()) reject(why);
  throw dims_differ(message(why), a, b);
}

void input_check::dims_equal(const std::vector<dim>& a, const std::vector<dim>& b, std::string_view why) const {
  if (a == b) return;
  std::string both = fmt::format("{}: {} and {}", why, shape{element_type::f32, a}.str().substr(3),
                                 shape{element_type::f32, b}.str().substr(3));
  if (a.size() != b.size()) reject(both);
  for (std::size_t i = 0; i < a.size(); ++i) equal(a[i], b[i], both);
}

void input_check::extent(std::int64_t number, std::string_view what) const {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (number < 0) reject(fmt::format("{} must not be negative", what));
  if (number > most) reject(fmt::format("{} must not exceed {}, not {}", what, most, number));
}

const shape& input_check::result(const shape& output) const {
  for (const dim& d : output.dims)
    if (d.is_static() && d.value() < 0) reject("the result would be " + output.str());
  return output;
}

dim window_count(const input_check& check, const dim& in, const window_axis& axis, bool round_up) {
  dim room = in + dim(axis.pad_begin + axis.pad_end - axis.extent());
  // Rounding up, a window that is larger than the axis counts once if the stride reaches its end.
  if (room.is_static() && room.value() < (round_up ? 1 - axis.stride : 0))
    check.reject(fmt::format("a window of {} does not fit into {} with its padding", axis.extent(), in.str()));
  if (!round_up) return room / dim(axis.stride) + dim(1);
  // A partial window counts if it starts inside: min(ceil(room / stride), floor((in + pad_begin - 1) / stride)) + 1.
  // The two numerators differ by a constant, so the same one is smaller for every length.
  dim last_inside = in + dim(axis.pad_begin - 1), partial = room + dim(axis.stride - 1);
  return dim::min(partial, last_inside) / dim(axis.stride) + dim(1);
}

std::vector<window_axis> window_axes(const input_check& check, std::size_t rank, std::span<const std::int64_t> window,
                                     std::span<const std::int64_t> strides, std::span<const std::int64_t> dilations,
                                     std::span<const std::int64_t> pads_begin, std::span<const std::int64_t> pads_end) {
  check.that(rank >= 1 && rank <= 3, "needs one to three spatial axes");
  for (const auto& list : {window, strides, dilations, pads_begin, pads_end})
    check.that(list.size() == rank, "window, strides, dilations and pads need one entry per spatial axis");
  std::vector<window_axis> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    axes[i] = {window[i], strides[i], dilations[i], pads_begin[i], pads_end[i]};
    check.that(window[i] > 0 && strides[i] > 0 && dilations[i] > 0, "window, strides and dilations must be positive");
    for (std::int64_t number : {window[i], strides[i], dilations[i]})
      check.extent(number, "window, strides and dilations");
    for (std::int64_t number : {pads_begin[i], pads_end[i]}) check.extent(number, "pads");
  }
  return axes;
}

}  // namespace kiln::detail
