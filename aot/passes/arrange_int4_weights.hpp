// Brings the 4-bit weights of an imported product (DequantizeLinear of a constant before MatMul or Gemm) into the form
// of int4_weights.hpp: transposed ahead of time if k is not innermost, with one scale for each row and group. Run it
// before passes that move reshapes and transposes. Scales per tensor, per axis and per block along k are supported.
// Other weights, and groups of fewer than 8 elements, are left alone.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct arrange_int4_weights {
  std::string_view name() const { return "arrange_int4_weights"; }
  bool apply(module& m) const;
};

}  // namespace kiln
