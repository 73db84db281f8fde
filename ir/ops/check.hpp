// Helpers for the shape rules of ir/ops/*.cpp. Every check throws error{invalid_model}, naming the operation and its
// input shapes. Stateless; any thread.
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
  // Normalizes an axis from [-rank, rank) to [0, rank).
  std::int64_t axis(std::int64_t axis, std::size_t rank) const;
  // Requires axes that are sorted, distinct and within [0, rank).
  void axes(const std::vector<std::int64_t>& axes, std::size_t rank) const;
  // Requires i32 or i64, the types of indices.
  void index_type(const shape& indices) const;
  // Requires a type that is neither i4, u4 nor bool.
  void numeric(const shape& operand) const;
  void floating(const shape& operand) const;
  // Throws dims_differ (ir/dims_differ.hpp) if symbolic dims are not known to be equal.
  void equal(const dim& a, const dim& b, std::string_view why) const;
  void dims_equal(const std::vector<dim>& a, const std::vector<dim>& b, std::string_view why) const;
  // Requires a number that is not negative and small enough that sums and products of a few such numbers cannot
  // overflow. Pads, windows and strides must satisfy this.
  void extent(std::int64_t number, std::string_view what) const;
  // Requires that no static dim is negative.
  const shape& result(const shape& output) const;
  [[noreturn]] void reject(std::string_view why) const;

 private:
  std::string message(std::string_view why) const;
  std::string_view operation_;
  std::span<const shape> inputs_;
};

// A sliding window along one axis of a convolution or pooling.
struct window_axis {
  std::int64_t window, stride, dilation, pad_begin, pad_end;
  std::int64_t extent() const { return dilation * (window - 1) + 1; }
};

// Number of windows that fit along an axis of length `in`. With round_up, a partial last window counts if it starts
// inside the image or its leading padding.
dim window_count(const input_check& check, const dim& in, const window_axis& axis, bool round_up);

// Combines an operation's per-axis lists into one entry per axis. Each list must have `rank` entries. Windows, strides
// and dilations must be positive, pads must not be negative, and all must satisfy input_check::extent.
std::vector<window_axis> window_axes(const input_check& check, std::size_t rank, std::span<const std::int64_t> window,
                                     std::span<const std::int64_t> strides, std::span<const std::int64_t> dilations,
                                     std::span<const std::int64_t> pads_begin, std::span<const std::int64_t> pads_end);

}  // namespace kiln::detail
