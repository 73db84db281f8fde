// One direction of a recurrent layer, after its input product.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// The cell of a recurrent layer.
enum class recurrent_cell : std::uint8_t { rnn, gru, lstm };
template <>
struct enum_table<recurrent_cell> {
  static constexpr std::array<std::string_view, 3> names{"rnn", "gru", "lstm"};
};

// inputs: gates [T, B, G*H] (x·Wᵀ + all biases that can be added ahead), weights R [G*H, H], recurrent_bias [G*H] (gru
// only: added to h·Rᵀ before the reset gate where linear_before_reset; zeros otherwise), h0 [B, H], and for lstm c0 [B,
// H]. Gate order as in ONNX: lstm i,o,f,c; gru z,r,h; rnn one. G = 4, 3, 1. Default activations: sigmoid and tanh.
// outputs: Y [T, B, H], final h [B, H], and for lstm final c [B, H]. reverse runs from the last time step to the first
// (Y stays in time order).
struct recurrent {
  recurrent_cell cell = recurrent_cell::lstm;
  bool reverse = false;
  bool linear_before_reset = false;

  std::string_view name() const { return "recurrent"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("cell", self.cell);
    f("reverse", self.reverse);
    f("linear_before_reset", self.linear_before_reset);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
