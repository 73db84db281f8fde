// Resampling of one axis as a product with a matrix of weights: the forms of Resize that the operation `resize` lacks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/ops/movement.hpp"

namespace kiln::onnx_import {

// Coordinates that the operation `resize` does not have.
enum class sampling : std::uint8_t { of_operation, crop_and_resize, half_pixel_for_nearest };

// One axis of a Resize. `scale` is output / input as the model gives it.
struct resampling {
  std::int64_t from = 1, to = 1;
  double scale = 1;
  bool antialias = false;
  sampling coordinates = sampling::of_operation;
  std::pair<double, double> region{0, 1};  // of crop_and_resize: 0 is the first element, 1 the last
};

struct resampling_weights {
  std::vector<double> matrix;              // [from, to], row-major
  std::vector<std::uint8_t> outside = {};  // [to]: 1 where the result is the model's extrapolation_value
};

// The weights of the specification of Resize (opset 19). With antialias the kernel is widened by the scale, as in
// Pillow. Neighbours beyond the ends repeat the ends; with exclude_outside they are left out. `op` gives the mode, the
// coordinates and the coefficients; its dims and scales are not read.
resampling_weights weights_of(const resize& op, const resampling& axis);

}  // namespace kiln::onnx_import
