// Brings the weights of 4 or 8 bits of an imported product (DequantizeLinear of a constant before MatMul or Gemm) into
// the form of quantized_matrix.hpp: transposed ahead of time if k is not innermost, with one scale for each row and
// group. Run it before passes that move reshapes and transposes. Scales per tensor, per axis and per block along k are
// supported. Other weights, and groups of fewer than 8 elements, are left alone.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct arrange_quantized_weights {
  std::string_view name() const { return "arrange_quantized_weights"; }
  bool apply(module& m) const;
};

}  // namespace kiln
