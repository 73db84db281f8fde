// Multiplies quantized 8-bit floats as they are. A dot of two tensors that DequantizeLinear makes of the same 8-bit
// float type becomes
//   dot of these elements with sums in f32 → × scales
// so that matrix units with 8-bit factors can compute it, weights are not converted in every run, and products are
// exact as before: two 8-bit floats have at most 8 bits of mantissa together.
//   * The left operand has one scale for the tensor, which may be computed at run time.
//   * The right operand has one scale for the tensor or for each column.
// Zero points of 8-bit floats are 0. Must run before constant folding, like integer_contractions.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct float8_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "float8_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
