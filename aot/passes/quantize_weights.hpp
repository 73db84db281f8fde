// Quantizes constant weights of matrix products to 4 bits (`kiln compile --int4-weights`): symmetrically, with one
// scale for each row and group of neighbours along k, in the type that the product multiplies in. For each group the
// better of two scales is taken: the largest magnitude at 7, or the element of the largest magnitude at -8. Elements
// are rounded to nearest.
//
// A float constant is quantized where it is the right factor of dots and nothing else (so not the table of an
// embedding), has at least `fewest_elements`, a depth that `least_group` divides, and loses little: the relative error
// ‖w − q‖ / ‖w‖ is at most `most_error`. Normally distributed weights in groups of 128 have 0.1.
#pragma once

#include <cstdint>

#include "ir/module.hpp"

namespace kiln {

struct quantization_report {
  std::int64_t quantized = 0, too_small = 0, too_inexact = 0;  // weights
  std::int64_t bytes_before = 0, bytes_after = 0;              // of those that were quantized
  double largest_error = 0;                                    // relative, of those
};

struct quantize_weights {
  quantization_report* report = nullptr;  // counts what is done, if not null
  std::int64_t most_group = 128,
               least_group = 32;  // a group is the largest power of two between them that divides the depth
  std::int64_t fewest_elements = std::int64_t{1} << 16;
  double most_error = 0.2;

  std::string_view name() const { return "quantize_weights"; }
  bool apply(module& m) const;
};

}  // namespace kiln
