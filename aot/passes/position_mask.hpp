// Recognizes masks that are computed from positions, as exporters write a causal mask: Trilu of ones, or a comparison
// of two ranges, followed by selections and conversions. Used by attention_mask.
#pragma once

#include <optional>

#include "ir/module.hpp"

namespace kiln {

// A matrix mask, repeated along all other axes: element [row, column] is `near` if column - row <= limit, and `far`
// otherwise.
struct position_mask {
  dim limit;
  double near, far;
};

std::optional<position_mask> find_position_mask(value v);

// Returns true if v's elements are their indices along the last axis.
bool counts_columns(value v);

}  // namespace kiln
