// Matrix products and convolutions. Floating types accumulate in f32 (f64 for f64), int8 in i32.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// Position of the channel axis of an image: N C spatial..., or N spatial... C.
enum class tensor_layout : std::uint8_t { channels_first, channels_last };
template <>
struct enum_table<tensor_layout> {
  static constexpr std::array<std::string_view, 2> names{"channels_first", "channels_last"};
};

// inputs: a [batch..., M, K], b [batch..., K, N], batch dims equal. transpose_a: a is [batch..., K, M]; transpose_b: b
// is [batch..., N, K]. output: [batch..., M, N] of `type`. left_bits: if it is not 0, a kernel may round the elements
// of a to integers of this many bits (8 or more), with one scale for each 32 or more neighbours along K; the reference
// does not.
struct dot {
  bool transpose_a = false;
  bool transpose_b = false;
  element_type type = element_type::f32;
  std::int64_t left_bits = 0;

  std::string_view name() const { return "dot"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("transpose_a", self.transpose_a);
    f("transpose_b", self.transpose_b);
    f("type", self.type);
    // Written only where it is set, so that other products keep the bytes, and the hashes, that they had without it.
    if (!std::is_const_v<Self> || self.left_bits != 0) f("left_bits", self.left_bits);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: image, weights. There are one to three spatial axes; each list has one entry per spatial axis. G = groups.
//   channels_first: image [B, C, spatial...], weights [F, C/G, window...]
//   channels_last: image [B, spatial..., C], weights [window..., C/G, F]
struct convolution {
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads_begin;
  std::vector<std::int64_t> pads_end;
  std::int64_t groups = 1;
  tensor_layout layout = tensor_layout::channels_first;

  std::string_view name() const { return "convolution"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("strides", self.strides);
    f("dilations", self.dilations);
    f("pads_begin", self.pads_begin);
    f("pads_end", self.pads_end);
    f("groups", self.groups);
    f("layout", self.layout);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// The gradient of convolution with respect to its image.
//   channels_first: image [B, C, spatial...], weights [C, F/G, window...]
//   channels_last: image [B, spatial..., C], weights [window..., F/G, C]
// output spatial = stride * (in - 1) + output_padding + dilation * (window - 1) + 1 - pads_begin - pads_end.
struct transposed_convolution {
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads_begin;
  std::vector<std::int64_t> pads_end;
  std::vector<std::int64_t> output_padding;
  std::int64_t groups = 1;
  tensor_layout layout = tensor_layout::channels_first;

  std::string_view name() const { return "transposed_convolution"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("strides", self.strides);
    f("dilations", self.dilations);
    f("pads_begin", self.pads_begin);
    f("pads_end", self.pads_end);
    f("output_padding", self.output_padding);
    f("groups", self.groups);
    f("layout", self.layout);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
