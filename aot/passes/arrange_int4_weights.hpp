// Brings the 4-bit weights of an imported product (DequantizeLinear of a constant before MatMul or Gemm) into the form
// of int4_weights.hpp: transposed ahead of time where k is not innermost, with one scale for each row and group. To be
// run before anything moves reshapes and transposes about. Scales for each tensor, axis or block along k are
// understood; others stay as they are, and so do groups of fewer than 8.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct arrange_int4_weights {
  std::string_view name() const { return "arrange_int4_weights"; }
  bool apply(module& m) const;
};

}  // namespace kiln
