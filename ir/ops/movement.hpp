// Operations that move elements without computing.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// The source of the padding elements.
enum class pad_mode : std::uint8_t { constant_, edge, reflect, wrap };
template <>
struct enum_table<pad_mode> {
  static constexpr std::array<std::string_view, 4> names{"constant", "edge", "reflect", "wrap"};
};

// How a scattered element is combined with the existing one.
enum class scatter_reduction : std::uint8_t { none, add, mul, min, max };
template <>
struct enum_table<scatter_reduction> {
  static constexpr std::array<std::string_view, 5> names{"none", "add", "mul", "min", "max"};
};

// Interpolation of resize.
enum class resize_mode : std::uint8_t { nearest, linear, cubic };
template <>
struct enum_table<resize_mode> {
  static constexpr std::array<std::string_view, 3> names{"nearest", "linear", "cubic"};
};

// How an output coordinate maps to an input coordinate (ONNX Resize, coordinate_transformation_mode).
enum class resize_coordinates : std::uint8_t {
  half_pixel,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  half_pixel_symmetric
};
template <>
struct enum_table<resize_coordinates> {
  static constexpr std::array<std::string_view, 5> names{"half_pixel", "pytorch_half_pixel", "align_corners",
                                                         "asymmetric", "half_pixel_symmetric"};
};

// Which neighbour the mode nearest takes (ONNX Resize, nearest_mode).
enum class resize_nearest : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };
template <>
struct enum_table<resize_nearest> {
  static constexpr std::array<std::string_view, 4> names{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
};

// Broadcasts by numpy's rule, right-aligned: input dims of 1 and missing dims stretch to `dims`.
struct broadcast {
  std::vector<dim> dims;

  std::string_view name() const { return "broadcast"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("dims", self.dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// The same elements in row-major order. `dims` contains no placeholders (-1 or 0).
struct reshape {
  std::vector<dim> dims;

  std::string_view name() const { return "reshape"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("dims", self.dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// output.dims[i] = input.dims[permutation[i]].
struct transpose {
  std::vector<std::int64_t> permutation;

  std::string_view name() const { return "transpose"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("permutation", self.permutation);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// output[i...] = input[starts + i * steps], with one entry per axis. `lengths` are the output dims. Steps may be
// negative.
struct slice {
  std::vector<std::int64_t> starts;
  std::vector<dim> lengths;
  std::vector<std::int64_t> steps;

  std::string_view name() const { return "slice"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("starts", self.starts);
    f("lengths", self.lengths);
    f("steps", self.steps);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// `before` and `after` have one entry per axis and are not negative; the importer turns negative pads into slices.
struct pad {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  pad_mode mode = pad_mode::constant_;
  double fill = 0;

  std::string_view name() const { return "pad"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("before", self.before);
    f("after", self.after);
    f("mode", self.mode);
    f("fill", self.fill);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Joins any number of inputs along `axis`.
struct concat {
  std::int64_t axis = 0;

  std::string_view name() const { return "concat"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: data, indices (i32 or i64; a negative index counts from the end). ONNX Gather.
struct gather {
  std::int64_t axis = 0;

  std::string_view name() const { return "gather"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: data, indices of the same rank. ONNX GatherElements.
struct gather_elements {
  std::int64_t axis = 0;

  std::string_view name() const { return "gather_elements"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: data, indices. ONNX GatherND.
struct gather_nd {
  std::int64_t batch_dims = 0;

  std::string_view name() const { return "gather_nd"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("batch_dims", self.batch_dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: data, indices, updates. ONNX ScatterElements.
struct scatter_elements {
  std::int64_t axis = 0;
  scatter_reduction reduction = scatter_reduction::none;

  std::string_view name() const { return "scatter_elements"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
    f("reduction", self.reduction);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: data, indices, updates. ONNX ScatterND.
struct scatter_nd {
  scatter_reduction reduction = scatter_reduction::none;

  std::string_view name() const { return "scatter_nd"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("reduction", self.reduction);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// No inputs. Each element is its index along `axis`.
struct iota {
  element_type type = element_type::i64;
  std::vector<dim> dims;
  std::int64_t axis = 0;

  std::string_view name() const { return "iota"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("type", self.type);
    f("dims", self.dims);
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// input: [..]. Every axis has a scale (1 for axes that do not change) and an output dim. A scale of 0 stands for output
// dim / input dim, which is unknown while the dims are symbolic. ONNX Resize without roi.
struct resize {
  std::vector<dim> dims;
  std::vector<double> scales;
  resize_mode mode = resize_mode::nearest;
  resize_coordinates coordinates = resize_coordinates::half_pixel;
  resize_nearest nearest = resize_nearest::round_prefer_floor;
  double cubic_coefficient = -0.75;
  bool exclude_outside = false;

  double scale(std::size_t axis, std::int64_t in, std::int64_t out) const {
    return scales[axis] != 0 || in == 0 ? scales[axis] : static_cast<double>(out) / static_cast<double>(in);
  }

  std::string_view name() const { return "resize"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("dims", self.dims);
    f("scales", self.scales);
    f("mode", self.mode);
    f("coordinates", self.coordinates);
    f("nearest", self.nearest);
    f("cubic_coefficient", self.cubic_coefficient);
    f("exclude_outside", self.exclude_outside);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
