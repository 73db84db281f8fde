// dot with weights that are made of fewer bits than they are multiplied in, element by element along k: they are read
// from memory as they are and become numbers on their way, in registers for one to four rows, else a piece of k at a
// time in the first-level cache (for many rows, in panels of columns: unpacked_panels.hpp).
#pragma once

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

// Whether the anchor is such a dot: transpose_b, one matrix, a right operand that is not in memory.
bool is_unpacked_dot(const kernel_emitter& e, const dot_sizes& sizes);
void emit_unpacked_dot(kernel_emitter& e, const dot_sizes& sizes);

}  // namespace kiln::cpu
