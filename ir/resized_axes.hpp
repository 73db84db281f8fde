// Determines which axes a resize does not change.
#pragma once

#include "ir/ops/movement.hpp"

namespace kiln {

// Returns true if the resize does not change the axis, for all values of open dims.
inline bool keeps_axis(const resize& op, std::size_t axis, const dim& in, const dim& out) {
  return in == out && (op.scales[axis] == 0 || op.scales[axis] == 1);
}

}  // namespace kiln
