// What the shape rules of ir/ops/*.cpp share: typed refusals that name the operation and the shapes it was given.
// Everything here throws error{invalid_model}; no state, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/shape.hpp"

namespace kiln::detail {

class input_check {
 public:
  input_check(std::string_view operation, std::span<const shape> inputs) : operation_(operation), inputs_(inputs) {}

  void arity(std::size_t count) const;
  void that(bool holds, std::string_view why) const {
    if (!holds) reject(why);
  }
  // axis in [-rank, rank) → [0, rank).
  std::int64_t axis(std::int64_t axis, std::size_t rank) const;
  // Sorted, distinct, within [0, rank).
  void axes(const std::vector<std::int64_t>& axes, std::size_t rank) const;
  // Indices into an axis: i32 or i64.
  void index_type(const shape& indices) const;
  // Not an i4 or u4, and not a bool.
  void numeric(const shape& operand) const;
  void floating(const shape& operand) const;
  // Throw dims_differ (ir/dims_differ.hpp) where symbols decide.
  void equal(const dim& a, const dim& b, std::string_view why) const;
  void dims_equal(const std::vector<dim>& a, const std::vector<dim>& b, std::string_view why) const;
  // Neither negative nor so large that sums and products of a few of them overflow: what pads, windows and strides must
  // be.
  void extent(std::int64_t number, std::string_view what) const;
  // Every dim that is known must not be negative.
  const shape& result(const shape& output) const;
  [[noreturn]] void reject(std::string_view why) const;

 private:
  std::string message(std::string_view why) const;
  std::string_view operation_;
  std::span<const shape> inputs_;
};

// A sliding window along one axis, as convolutions and poolings have it.
struct window_axis {
  std::int64_t window, stride, dilation, pad_begin, pad_end;
  std::int64_t extent() const { return dilation * (window - 1) + 1; }
};

// How many windows fit along an axis of length `in`. round_up counts a partial last window that starts inside the image
// or its leading padding.
dim window_count(const input_check& check, const dim& in, const window_axis& axis, bool round_up);

// The axes of an operation's parallel lists; each list must have `rank` entries, windows, strides and dilations
// positive, pads not negative, none beyond what input_check::extent allows.
std::vector<window_axis> window_axes(const input_check& check, std::size_t rank, std::span<const std::int64_t> window,
                                     std::span<const std::int64_t> strides, std::span<const std::int64_t> dilations,
                                     std::span<const std::int64_t> pads_begin, std::span<const std::int64_t> pads_end);

}  // namespace kiln::detail
