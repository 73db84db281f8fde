// The constant right factor of an integer product or convolution as signed bytes, with the per-column (output channel)
// sums that are needed to correct for zero points.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/literal.hpp"

namespace kiln {

struct integer_weights {
  // The weights as i8.
  literal elements = {};
  // Zero point of each column: the weight is elements − zero. Empty if all are 0.
  std::vector<std::int64_t> zeros = {};
  // Sum of the weights of each column.
  std::vector<std::int64_t> sums = {};
  // Sum of |element| of each column.
  std::vector<std::int64_t> magnitudes = {};
};

// Converts `data` (i8 or u8, columns along `axis`). `zeros` has one element or one per column. If the weights minus
// their zero points fit into signed bytes, they are stored so, without a zero point.
integer_weights make_integer_weights(const literal& data, std::size_t axis, const std::vector<std::int64_t>& zeros);

}  // namespace kiln
