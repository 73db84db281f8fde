// Chooses how a contraction is cut into tiles and work items, from the target's registers and caches and the kernel's
// configuration: "tile_m" rows and "tile_n" columns of a tile, "tile_k" steps that all tiles of an item take before the
// next ones, "unroll" steps at once (1: more let the back end run out of registers with the largest tiles), "pack" and
// "panels_inside" 0 or 1, "prefetch" steps ahead, "items" in all.
#pragma once

#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/cpu/contraction/contraction.hpp"

namespace kiln::cpu {

// Lanes of a register for sums of this type.
std::int64_t register_lanes(const kernel_emitter& e, element_type accumulation);

// A tile for lines of `rows` rows and panels that fill up the last one (packed), by a cost in cycles of the two FMA and
// load ports. Configured sizes win where they fit. A vector of a factor takes `factor_registers`.
tile_shape choose_tile(const kernel_emitter& e, std::int64_t rows, std::int64_t columns, element_type accumulation,
                       std::int64_t factor_registers = 1);

// All columns in panels of the tile's width, the last one partly filled.
std::vector<column_segment> packed_segments(const tile_shape& tile, std::int64_t columns);
// The same where nothing may be read beside the columns: what does not fill a panel goes into ever narrower ones.
std::vector<column_segment> exact_segments(const tile_shape& tile, std::int64_t columns);

// Sets tiles_per_item and panels_per_item: items large enough to reuse what they load and to be worth scheduling, small
// enough that a few dozen threads have something to do.
void choose_items(const kernel_emitter& e, contraction& c);

// What a tuner may vary of a contraction whose tiles lie in `lines` lines of `rows` rows, with `columns` columns and
// `products` multiply-adds (steps times taps) for each element, `steps` of them in a row.
struct contraction_extents {
  std::int64_t lines = 1, rows = 1, columns = 1, steps = 1, products = 1;
  std::int64_t factor_registers = 1;  // as in choose_tile
};
std::vector<candidate> blocking_space(const kernel_emitter& e, const contraction_extents& extents, element_type type);

}  // namespace kiln::cpu
