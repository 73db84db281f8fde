// The right factor of a contraction, rearranged into panels: [groups, panels, taps, steps, panel columns], so that a
// tile reads it in one stream. A stage of its own, which a runtime runs once at load where the factor is constant.
#pragma once

#include <functional>

#include "mlir_bridge/cpu/contraction/contraction.hpp"

namespace kiln::cpu {

struct right_source {
  value tensor;
  std::int64_t column_axis = 0;  // of the tensor, from 0
  // Indices of an element in the tensor.
  std::function<values(Value group, Value tap, Value step, Value column)> locate = nullptr;
  // Where set: which elements count, for a vector of columns; the others become zero. All of them can be read.
  std::function<Value(Value step, Value columns)> counts = nullptr;
};

// Sets right and its strides, and the segments, in `c`, whose groups, steps and columns are set; `taps` are the
// window's positions.
void pack_right(kernel_emitter& e, contraction& c, std::int64_t taps, const tile_shape& tile,
                const right_source& source);

// The same for factors of bytes: [groups, panels, taps, steps, panel columns] lanes, each with four neighbours along k,
// of which there are `depth`; zeros follow.
void pack_right_bytes(kernel_emitter& e, contraction& c, std::int64_t taps, std::int64_t depth, const tile_shape& tile,
                      const right_source& source);

}  // namespace kiln::cpu
