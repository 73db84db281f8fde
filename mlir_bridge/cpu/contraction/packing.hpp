// Packs the right factor of a contraction into panels [groups, panels, taps, steps, panel columns], so that a tile
// reads it sequentially. This is a separate stage; if the factor is constant, the runtime runs it once at load.
#pragma once

#include <functional>

#include "mlir_bridge/cpu/contraction/contraction.hpp"

namespace kiln::cpu {

struct right_source {
  value tensor;
  // Axis of the columns in the tensor.
  std::int64_t column_axis = 0;
  // Returns the indices of an element in the tensor.
  std::function<values(Value group, Value tap, Value step, Value column)> locate = nullptr;
  // If set, returns a mask of the valid elements for a vector of columns; other elements become zero. All of them must
  // be readable.
  std::function<Value(Value step, Value columns)> counts = nullptr;
};

// Emits the packing stage and sets `right`, its strides and the segments in `c`. `c` must have its groups, steps and
// columns. `taps` is the number of window positions.
void pack_right(kernel_emitter& e, contraction& c, std::int64_t taps, const tile_shape& tile,
                const right_source& source);

// The same for c.by_lane: [groups, panels, taps, steps, panel columns] of 32-bit lanes. Each lane holds neighbours
// along k, of which there are `depth` in total; the rest is filled with zeros.
void pack_right_lanes(kernel_emitter& e, contraction& c, std::int64_t taps, std::int64_t depth, const tile_shape& tile,
                      const right_source& source);

}  // namespace kiln::cpu
