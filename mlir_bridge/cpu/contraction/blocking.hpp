// Chooses the tiles and work items of a contraction from the target's registers and caches and from the configuration.
// The configuration has "tile_m" and "tile_n" (rows and columns of a tile), "tile_k" (steps that all tiles of an item
// take before the next ones), "unroll" (steps per loop iteration; the default is 1, because more make the back end
// spill with the largest tiles), "pack" and "panels_inside" (0 or 1), "prefetch" (steps ahead) and "items" (total
// number).
#pragma once

#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/cpu/contraction/contraction.hpp"
#include "mlir_bridge/cpu/contraction/factor_loads.hpp"

namespace kiln::cpu {

// Returns how many sums of this type fit into a vector register.
std::int64_t register_lanes(const kernel_emitter& e, element_type accumulation);

// Chooses the tile with the lowest estimated cost, in cycles of the two FMA and load ports, for lines of `rows` rows
// and packed panels. Configured sizes win if they fit. Rows of the left factor are `row_bytes` apart (0: neighbours),
// which limits how many of them the first-level cache holds. `panel_columns`: the width of the panels if it is given
// (0: any).
tile_shape choose_tile(const kernel_emitter& e, std::int64_t rows, std::int64_t columns, element_type accumulation,
                       std::int64_t row_bytes, const factor_loads& loads = {}, std::int64_t panel_columns = 0);

// Divides all columns into panels of the tile's width; the last one may be partly filled.
std::vector<column_segment> packed_segments(const tile_shape& tile, std::int64_t columns);
// The same without reading past the last column: columns that do not fill a panel go into ever narrower panels.
std::vector<column_segment> exact_segments(const tile_shape& tile, std::int64_t columns);

// Sets tiles_per_item and panels_per_item. Items should be large enough to reuse their loads and to be worth
// scheduling, and numerous enough for a few dozen threads.
void choose_items(const kernel_emitter& e, contraction& c);

// The extents that the tuning space depends on: tiles lie in `lines` lines of `rows` rows and in `columns` columns.
// Each element takes `products` multiply-adds (steps times taps), `steps` of them in a row.
struct contraction_extents {
  std::int64_t lines = 1, rows = 1, columns = 1, steps = 1, products = 1;
  factor_loads loads = {};
};
std::vector<candidate> blocking_space(const kernel_emitter& e, const contraction_extents& extents, element_type type);

}  // namespace kiln::cpu
