// Compares two tensors with a tolerance that depends on their element type.
#pragma once

#include <string>

#include "ir/literal.hpp"

namespace kiln {

// What tensors were computed with, and so how far they may differ: in their own types, with f16 or bf16 numbers in
// between, or with rows of products that were rounded to bytes.
enum class exactness { own_types, halves, bytes };

struct comparison {
  bool ok = false;
  double max_error = 0;      // largest |a - b|
  double rms_error = 0;      // square root of the mean of (a - b)²
  double relative_norm = 0;  // ‖a - b‖ / ‖b‖
  // The largest relative_norm that passes: 1e-4 for f32, 1e-6 for f64, 1e-2 for f16 and smaller floats and for all
  // floats computed with halves, 5e-2 for all floats computed with bytes, 0 for integers and bool.
  double tolerance = 0;
  std::string reason;  // empty when ok
};

// Where `expected` is NaN or infinite, `got` must be the same.
comparison compare(const literal& got, const literal& expected, exactness computed = exactness::own_types);

}  // namespace kiln
