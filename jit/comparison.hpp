// How close two tensors are, and whether that is close enough for their type.
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

// `reduced`: computed in f16 or bf16 inside, whatever the type of the tensors. Where `expected` is NaN or infinite,
// `got` must be so too.
comparison compare(const literal& got, const literal& expected, bool reduced = false);

}  // namespace kiln
