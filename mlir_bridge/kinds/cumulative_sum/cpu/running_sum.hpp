// One sequential pass along the axis of a cumulative_sum, for static and open sizes.
#pragma once

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

// The type of the running sum. Floats are summed in f64, because a long chain of f32 additions loses digits.
element_type running_sum_type(element_type type);

// Computes and stores `lanes` neighbouring sums for each index of the anchor's axis. `start` is the position along the
// other axes. A stage must be open.
void emit_running_sum(codegen::kernel_emitter& e, const codegen::position& start, std::int64_t lanes);

}  // namespace kiln::cpu
