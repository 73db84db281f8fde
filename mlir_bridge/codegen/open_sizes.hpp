// What code generation may rely on if a size is open.
#pragma once

#include <cstdint>

#include "ir/dim.hpp"

namespace kiln::codegen {

// The largest number that divides the size whatever it is; the size itself if it is static, 0 for 0.
std::int64_t known_factor(const dim& size);

// The size, or INT64_MAX if it is open: an upper bound of indices.
std::int64_t known_bound(const dim& size);

// For grouping the axes of a reshape: whether `a` rather than `b` should be multiplied by the next axis, so that both
// become equal as soon as possible.
bool is_smaller_part(const dim& a, const dim& b);

// An order for containers: numbers first, by value, then expressions by their text.
struct dim_order {
  bool operator()(const dim& a, const dim& b) const;
};

}  // namespace kiln::codegen
