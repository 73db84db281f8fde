// The taps of a resize along an axis of open size, computed at run time. Axes of static sizes have tables instead
// (reference/resize.hpp); both give the same neighbours.
#pragma once

#include <cstddef>

#include "ir/ops/movement.hpp"
#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

struct open_taps {
  // Indices within the input axis: 1 for nearest, 2 for linear, 4 for cubic. As many lanes as `at` has.
  values positions;
  // One for each position, of `weight_type`; empty for nearest.
  values weights;
};

// `at` are indices (a scalar or a vector) of the output axis `axis`, which has `out` elements; the input has `in`, at
// least one. `weight_type` is f32 or f64. A stage must be open.
open_taps open_taps_at(kernel_emitter& e, const resize& op, std::size_t axis, const dim& in, const dim& out, Value at,
                       element_type weight_type);

}  // namespace kiln::codegen
