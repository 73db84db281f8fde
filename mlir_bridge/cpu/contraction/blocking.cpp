#include "mlir_bridge/cpu/contraction/blocking.hpp"

#include <algorithm>
#include <bit>

namespace kiln::cpu {

namespace {

// Multiply-adds that make a work item worth scheduling (about 10 µs), and how many items feed a large machine.
constexpr std::int64_t item_products = 1 << 19;
constexpr std::int64_t wanted_items = 256;
// Up to so many rows a product waits for its right factor, which is then fetched so far ahead.
constexpr std::int64_t few_rows = 32;
constexpr std::int64_t prefetch_bytes = 8 << 10;

// Cycles of one step of rows × vectors sums: two multiply-adds and two loads start in a cycle, a multiply-add takes four, and a
// panel's data comes from the second-level cache at half a register in a cycle.
double step_cycles(std::int64_t rows, std::int64_t vectors) {
  const double r = static_cast<double>(rows), v = static_cast<double>(vectors);
  return std::max({r * v / 2, (r + v) / 2, 2 * v, 4.0}) + 0.5;
}

}  // namespace

std::int64_t register_lanes(const kernel_emitter& e, element_type accumulation) { return e.target.vector_bits / std::max(32, storage_bits(accumulation)); }

tile_shape choose_tile(const kernel_emitter& e, std::int64_t rows, std::int64_t columns, element_type accumulation) {
  const std::int64_t registers = e.target.vector_registers;
  std::int64_t lanes = register_lanes(e, accumulation);
  lanes = std::min(lanes, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(columns, 1)))));
  const std::int64_t fixed_rows = choose(e.configuration, "tile_m", 0), fixed_columns = choose(e.configuration, "tile_n", 0);
  tile_shape best{1, 1, lanes};
  double best_cost = 1e300;
  for (std::int64_t vectors = 1; vectors <= std::max<std::int64_t>(4, registers / 2); ++vectors) {
    if (fixed_columns > 0 && vectors != std::max<std::int64_t>(1, fixed_columns / lanes)) continue;
    if (vectors > 1 && (vectors - 1) * lanes >= columns) break;
    for (std::int64_t r = 1; r <= std::min<std::int64_t>(rows, registers - 1); ++r) {
      if (fixed_rows > 0 && r != std::min(fixed_rows, rows)) continue;
      // Sums, one step's right factors and one left factor.
      if (r * vectors + vectors + 1 > registers && r > 1) continue;
      const std::int64_t panels = (columns + vectors * lanes - 1) / (vectors * lanes);
      const double line = static_cast<double>(rows / r) * step_cycles(r, vectors) + (rows % r ? step_cycles(rows % r, vectors) : 0.0);
      const double cost = static_cast<double>(panels) * line;
      if (cost < best_cost * (r * vectors > best.rows * best.vectors ? 1.001 : 0.999)) {
        best_cost = cost;
        best = {r, vectors, lanes};
      }
    }
  }
  return best;
}

std::vector<column_segment> packed_segments(const tile_shape& tile, std::int64_t columns) {
  return {{0, (columns + tile.columns() - 1) / tile.columns(), 0, tile.vectors, tile.lanes}};
}

std::vector<column_segment> exact_segments(const tile_shape& tile, std::int64_t columns) {
  std::vector<column_segment> segments;
  std::int64_t panel = 0, column = 0;
  auto take = [&](std::int64_t vectors, std::int64_t lanes) {
    const std::int64_t count = vectors ? (columns - column) / (vectors * lanes) : 0;
    if (count == 0) return;
    segments.push_back({panel, count, column, vectors, lanes});
    panel += count;
    column += count * vectors * lanes;
  };
  take(tile.vectors, tile.lanes);
  take((columns - column) / tile.lanes, tile.lanes);
  for (std::int64_t lanes = tile.lanes / 2; lanes; lanes /= 2) take(1, lanes);
  return segments;
}

void choose_items(const kernel_emitter& e, contraction& c) {
  std::int64_t taps = 1, phases = 1;
  for (const contraction_axis& axis : c.axes) {
    std::int64_t most = 0;
    for (const axis_phase& phase : axis.phases) most = std::max(most, phase.taps);
    taps *= most;
    phases *= static_cast<std::int64_t>(axis.phases.size());
  }
  const std::int64_t tiles = c.tiles(), panels = c.panels();
  const std::int64_t products = std::max<std::int64_t>(1, c.steps * taps);
  const std::int64_t total = c.batches * c.groups * phases * tiles * c.rows * c.columns * products;
  const std::int64_t wanted = std::clamp<std::int64_t>(total / item_products, 1, wanted_items);
  // Half of the second-level cache holds what is read again and again: the panels of an item while its tiles go by, each tile's rows
  // coming from far away only once; or, where a panel is too large for that, the rows of an item while its panels go by.
  std::int64_t width = 0;
  for (const column_segment& segment : c.segments) width = std::max(width, segment.columns());
  const std::int64_t row_bytes = std::max<std::int64_t>(1, c.rows * products * static_cast<std::int64_t>(storage_bytes(c.left.type, 1)));
  const std::int64_t panel_bytes = std::max<std::int64_t>(1, width * products * static_cast<std::int64_t>(storage_bytes(c.right.type, 1)));
  const std::int64_t half = e.target.l2_bytes / 2;
  c.panels_inside = choose(e.configuration, "panels_inside", half / panel_bytes >= 2);
  c.panels_per_item = c.panels_inside ? std::clamp<std::int64_t>(half / panel_bytes, 1, panels) : panels;
  c.tiles_per_item = c.panels_inside ? tiles : std::clamp<std::int64_t>(half / row_bytes, std::min<std::int64_t>(8, tiles), tiles);
  auto items = [&] {
    return c.batches * c.groups * phases * ((tiles + c.tiles_per_item - 1) / c.tiles_per_item) * ((panels + c.panels_per_item - 1) / c.panels_per_item);
  };
  while (items() < wanted && (c.panels_per_item > 1 || c.tiles_per_item > 1)) {
    const bool enough_tiles = c.tiles_per_item > (c.panels_inside ? 8 : 2 * c.panels_per_item) && c.tiles_per_item > 4;
    std::int64_t& n = c.panels_per_item > 1 && !enough_tiles ? c.panels_per_item : c.tiles_per_item;
    n = (n + 1) / 2;
  }
  // A few rows use up the right factor faster than it comes.
  if (tiles * c.rows <= few_rows) c.prefetch_steps = choose(e.configuration, "prefetch", std::max<std::int64_t>(1, prefetch_bytes / (width * static_cast<std::int64_t>(storage_bytes(c.right.type, 1)))));
}

}  // namespace kiln::cpu
