// Quantizes constant weights of matrix products to 4 bits (`kiln compile --int4-weights`). Quantization is symmetric,
// with one scale for each row and group of neighbours along k, in the element type of the product. For each group the
// better of two scales is chosen: one maps the largest magnitude to 7, the other maps the element of the largest
// magnitude to -8. Elements are rounded to nearest.
// A float constant is quantized if it is used only as the right factor of dots (an embedding table is not), has at
// least `fewest_elements`, has a depth divisible by `least_group`, and if the relative error ‖w − q‖ / ‖w‖ is at most
// `most_error`. Normally distributed weights in groups of 128 have an error of 0.1.
#pragma once

#include <cstdint>

#include "ir/module.hpp"

namespace kiln {

struct quantization_report {
  std::int64_t quantized = 0, too_small = 0, too_inexact = 0;  // numbers of weights
  std::int64_t bytes_before = 0, bytes_after = 0;              // of the quantized weights
  double largest_error = 0;                                    // largest relative error of the quantized weights
};

struct quantize_weights {
  quantization_report* report = nullptr;  // filled in if not null
  // A group is the largest power of two between least_group and most_group that divides the depth.
  std::int64_t most_group = 128, least_group = 32;
  std::int64_t fewest_elements = std::int64_t{1} << 16;
  double most_error = 0.2;

  std::string_view name() const { return "quantize_weights"; }
  bool apply(module& m) const;
};

}  // namespace kiln
