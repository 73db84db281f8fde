// Compares two tensors with a tolerance that depends on their element type.
#pragma once

#include <string>

#include "ir/literal.hpp"

namespace kiln {

struct comparison {
  bool ok = false;
  double max_error = 0;      // largest |a - b|
  double rms_error = 0;      // square root of the mean of (a - b)²
  double relative_norm = 0;  // ‖a - b‖ / ‖b‖
  double tolerance = 0;  // of relative_norm: 1e-4 for f32, 1e-6 for f64, 1e-2 for f16 and less; 0 for integers and bool
  std::string reason;    // empty when ok
};

// `reduced`: the tensors were computed with f16 or bf16 intermediates, so the tolerance of those types applies. Where
// `expected` is NaN or infinite, `got` must be the same.
comparison compare(const literal& got, const literal& expected, bool reduced = false);

}  // namespace kiln
