// One direction of a recurrent layer, after its input has been multiplied with the input weights.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// The cell of a recurrent layer.
enum class recurrent_cell : std::uint8_t { rnn, gru, lstm };
template <>
struct enum_table<recurrent_cell> {
  static constexpr std::array<std::string_view, 3> names{"rnn", "gru", "lstm"};
};

// inputs: gates [T, B, G*H] (x·Wᵀ plus all biases that can be added in advance), weights R [G*H, H], recurrent_bias
// [G*H], h0 [B, H], and for lstm c0 [B, H]. recurrent_bias is used by gru only, where linear_before_reset adds it to
// h·Rᵀ before the reset gate; otherwise it is zero. The order of gates is that of ONNX: lstm i,o,f,c (G = 4); gru z,r,h
// (G = 3); rnn has one gate (G = 1). Default activations: sigmoid and tanh.
// outputs: Y [T, B, H], final h [B, H], and for lstm final c [B, H]. reverse runs from the last time step to the first;
// Y stays in time order.
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
