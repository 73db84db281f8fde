// dot of many rows with weights that are made of fewer bits than they are multiplied in. An item has a panel of
// columns, as wide as a tile: it unpacks a piece of its depth into the first-level cache, turned so that the columns
// are neighbours, and multiplies all its rows by it before the next piece. Sums are in memory in between.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

// With fewer rows, turning the weights costs more than sums along k, lane by lane (unpacked_dot.hpp).
inline constexpr std::int64_t least_panel_rows = 40;

// The anchor is one that unpacked_dot.hpp takes.
void emit_unpacked_panels(kernel_emitter& e, const dot_sizes& sizes);

}  // namespace kiln::cpu
