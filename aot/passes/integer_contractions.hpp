// Computes products and convolutions of quantized tensors in integers. DequantizeLinear of an 8-bit tensor and of 8-bit
// constant weights before a dot or convolution becomes
//   dot or convolution of u8 and i8, sums in i32 → − zero point × column sums of the weights → × scales
// and MatMulInteger, ConvInteger and the QLinear operators, which are imported with i32 factors, the same without
// scales. What follows (bias, activation, QuantizeLinear) stays as it is; kernel formation makes it the epilogue. The
// weights stay 8 bits wide in the file.
//   * Activations: one scale and zero point for the tensor, which may be computed at run time. Signed activations
//   become
//     unsigned (+ 128), because processors multiply u8 by i8.
//   * Weights: scale and zero point for the tensor or for each column. A zero point that does not fit into the signed
//     weights is corrected with row sums of the activations (dot only).
//   * Padding is filled with the zero point, which stands for 0.
// Run it before constant folding, which would convert the weights to floats.
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
