// Static facts about open sizes that code generation can rely on.
#pragma once

#include <cstdint>

#include "ir/dim.hpp"

namespace kiln::codegen {

// Returns the largest number that divides the size for all values of its symbols. Returns a static size itself, and 0
// for 0.
std::int64_t known_factor(const dim& size);

// Returns an upper bound for indices: the size, or INT64_MAX if it is open.
std::int64_t known_bound(const dim& size);

// For grouping the axes of a reshape: returns true if `a` rather than `b` should be multiplied by the next axis so that
// both products become equal as soon as possible.
bool is_smaller_part(const dim& a, const dim& b);

// An order for containers of dims: numbers come first, by value; then expressions, by text.
struct dim_order {
  bool operator()(const dim& a, const dim& b) const;
};

}  // namespace kiln::codegen
