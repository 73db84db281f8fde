// The constant right factor of a product or convolution of integers: signed bytes, with what has to be known of each
// column (output channel) to correct the sums for zero points.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/literal.hpp"

namespace kiln {

struct integer_weights {
  literal elements = {};                      // i8
  std::vector<std::int64_t> zeros = {};       // of each column: the weight is elements − zero; empty if all are 0
  std::vector<std::int64_t> sums = {};        // of each column's weights
  std::vector<std::int64_t> magnitudes = {};  // of each column: the sum of |element|
};

// `data` holds i8 or u8, with columns along `axis`. `zeros` has one element, or one for each column. Weights that fit
// into signed bytes are stored without a zero point.
integer_weights make_integer_weights(const literal& data, std::size_t axis, const std::vector<std::int64_t>& zeros);

}  // namespace kiln
