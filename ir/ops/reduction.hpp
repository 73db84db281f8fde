// Operations that combine many elements along axes.
#pragma once

#include "ir/operation.hpp"
#include "ir/ops/contraction.hpp"

namespace kiln {

// The combining function of reduce.
enum class reduction_kind : std::uint8_t { sum, mean, max, min, product };
template <>
struct enum_table<reduction_kind> {
  static constexpr std::array<std::string_view, 5> names{"sum", "mean", "max", "min", "product"};
};

// The combining function of a pooling window.
enum class pooling_kind : std::uint8_t { max, average };
template <>
struct enum_table<pooling_kind> {
  static constexpr std::array<std::string_view, 2> names{"max", "average"};
};

// Combines the elements along `axes` (sorted, not negative). keep_dims keeps the reduced axes as dims of 1.
struct reduce {
  reduction_kind kind = reduction_kind::sum;
  std::vector<std::int64_t> axes;
  bool keep_dims = false;

  std::string_view name() const { return "reduce"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("kind", self.kind);
    f("axes", self.axes);
    f("keep_dims", self.keep_dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Index (i64) of the largest or smallest element along `axis`. Ties go to the first element or, optionally, the last.
struct arg_reduce {
  bool largest = true;
  std::int64_t axis = 0;
  bool keep_dims = false;
  bool select_last = false;

  std::string_view name() const { return "arg_reduce"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("largest", self.largest);
    f("axis", self.axis);
    f("keep_dims", self.keep_dims);
    f("select_last", self.select_last);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Pools windows over the spatial axes of an image (1 to 3 of them). Padding never wins a maximum; count_padding tells
// whether it counts in an average. ceil_mode rounds the number of windows up, but every window must start inside the
// image or its leading padding.
struct pooling {
  pooling_kind kind = pooling_kind::max;
  std::vector<std::int64_t> window;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads_begin;
  std::vector<std::int64_t> pads_end;
  bool count_padding = false;
  bool ceil_mode = false;
  tensor_layout layout = tensor_layout::channels_first;

  std::string_view name() const { return "pooling"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("kind", self.kind);
    f("window", self.window);
    f("strides", self.strides);
    f("dilations", self.dilations);
    f("pads_begin", self.pads_begin);
    f("pads_end", self.pads_end);
    f("count_padding", self.count_padding);
    f("ceil_mode", self.ceil_mode);
    f("layout", self.layout);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Softmax along one axis. `logarithm` gives log(softmax).
struct softmax {
  std::int64_t axis = -1;
  bool logarithm = false;

  std::string_view name() const { return "softmax"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
    f("logarithm", self.logarithm);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// (x - mean) / sqrt(variance + epsilon) over `axes` (sorted, not negative), with statistics in f32 or wider. With
// centered=false it is RMS normalization: the mean is not subtracted and the divisor is sqrt(mean(x²) + epsilon). Scale
// and bias are separate elementwise operations.
struct normalize {
  std::vector<std::int64_t> axes;
  double epsilon = 1e-5;
  bool centered = true;

  std::string_view name() const { return "normalize"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axes", self.axes);
    f("epsilon", self.epsilon);
    f("centered", self.centered);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Running sum along `axis`.
struct cumulative_sum {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;

  std::string_view name() const { return "cumulative_sum"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
    f("exclusive", self.exclusive);
    f("reverse", self.reverse);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
