// Computes products and convolutions of quantized tensors in integers. A dot or convolution whose operands are
// DequantizeLinear of an 8-bit tensor and DequantizeLinear of constant 8-bit weights becomes
//   dot or convolution of u8 and i8 with sums in i32 → − zero point × column sums of the weights → × scales
// MatMulInteger, ConvInteger and the QLinear operators, which are imported with i32 factors, are rewritten in the same
// way without scales. The operations that follow (bias, activation, QuantizeLinear) do not change; kernel formation
// makes them the epilogue. The weights stay 8 bits wide in the file.
//   * Activations have one scale and one zero point per tensor, which may be computed at run time. Signed
//     activations are made unsigned (+ 128), because processors multiply u8 by i8.
//   * Weights have a scale and a zero point per tensor or per column. A zero point that does not fit into the signed
//     weights is corrected with row sums of the activations (dot only).
//   * Padding is filled with the zero point, which represents 0.
// Must run before constant folding, which would convert the weights to floats.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct integer_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "integer_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
