#include "mlir_bridge/cpu/contraction/blocking.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Number of multiply-adds that makes a work item worth scheduling (about 10 µs). The next constant is the number of
// items that keeps a large machine busy.
constexpr std::int64_t item_products = 1 << 19;
constexpr std::int64_t wanted_items = 256;
// Up to this many rows, a product is limited by loading its right factor. The next constants are the prefetch distances
// from memory and from the second-level cache.
constexpr std::int64_t few_rows = 32;
constexpr std::int64_t far_prefetch_bytes = 8 << 10, near_prefetch_bytes = 2 << 10;
// Results are prefetched only if an element takes at least this many multiply-adds.
constexpr std::int64_t fetching_products = 64;

// Upper bound on the bytes of partial sums of an item, which stay in memory if steps are processed in blocks.
constexpr std::int64_t partial_bytes = 64 << 10;

// Returns the largest divisor of `steps` that is at most `most`. Returns 0 if blocks would be too small, or one block
// holds all steps.
std::int64_t block_of_steps(std::int64_t steps, std::int64_t most) {
  if (most <= 0 || most >= steps) return 0;
  std::int64_t block = most;
  while (steps % block) --block;
  return 2 * block > most ? block : 0;
}

// Estimates the cost of the tile loop on a target.
class tile_costs {
 public:
  tile_costs(const target_row& target, const factor_loads& loads)
      : registers_(target.vector_registers - spare_registers(target, loads)),
        loads_(loads),
        panel_cycles_(is_arm(target) ? 1 : 2),
        row_cycles_(is_sve(target, loads) ? 0.02 : 0) {}

  // LLVM needs registers of its own on Arm: one when scalars are taken from lanes, and more for SVE, whose
  // multiply-adds have fewer forms. With fewer, it copies or spills sums in the loop.
  static std::int64_t spare_registers(const target_row& target, const factor_loads& loads) {
    if (!is_arm(target)) return 0;
    return is_sve(target, loads) ? 4 : 1;
  }
  static bool is_sve(const target_row& target, const factor_loads& loads) {
    return is_arm(target) && target.vector_bits > neon_bits && loads.lanes == 0;
  }

  // Whether registers hold the sums, the right factors of one step, and a left factor or all that was loaded of them.
  bool fits(std::int64_t rows, std::int64_t vectors) const {
    const std::int64_t left = loads_.steps > 1 ? rows : loads_.registers;
    return rows * vectors + vectors * loads_.registers + left <= registers_;
  }

  // Estimates the cycles of one step of rows × vectors sums: two multiply-adds and two loads start per cycle, a
  // multiply-add has a latency of four cycles, and a panel is read from the second-level cache, which delivers 16 bytes
  // per cycle or half a register of an x86-64 processor.
  double step_cycles(std::int64_t rows, std::int64_t vectors) const {
    const double r = static_cast<double>(rows), v = static_cast<double>(vectors),
                 left_loads = r / static_cast<double>(loads_.steps);
    return std::max({r * v / 2, (left_loads + v) / 2, panel_cycles_ * v, 4.0}) + row_cycles_ * r + 0.5;
  }

 private:
  std::int64_t registers_;
  factor_loads loads_;
  // The second is the cost of a row beside its multiply-adds: SVE computes the address of each scalar.
  double panel_cycles_, row_cycles_;
};

// Returns how many lines of the left factor, `row_bytes` apart, the first-level cache holds at once. On x86-64 its sets
// repeat every 4096 bytes, because it is indexed by the offset in a page. Arm's cores have four ways, Apple's eight.
std::int64_t most_rows(const target_row& target, std::int64_t row_bytes) {
  constexpr std::int64_t page = 4096, line = 64, arm_ways = 4;
  if (row_bytes == 0 || row_bytes % line) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t ways = is_arm(target) ? arm_ways : target.l1_bytes / page, period = target.l1_bytes / ways;
  return ways * (period / std::gcd(row_bytes, period));
}

}  // namespace

std::int64_t register_lanes(const kernel_emitter& e, element_type accumulation) {
  return e.target.vector_bits / std::max(32, storage_bits(accumulation));
}

tile_shape choose_tile(const kernel_emitter& e, std::int64_t rows, std::int64_t columns, element_type accumulation,
                       std::int64_t row_bytes, const factor_loads& loads, std::int64_t panel_columns) {
  const tile_costs costs(e.target, loads);
  const std::int64_t registers = e.target.vector_registers;
  std::int64_t lanes = loads.lanes ? loads.lanes : register_lanes(e, accumulation);
  lanes = std::min(
      lanes, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(columns, 1)))));
  const std::int64_t fixed_rows = choose(e.configuration, "tile_m", 0),
                     fixed_columns = panel_columns ? panel_columns : choose(e.configuration, "tile_n", 0);
  tile_shape best{1, 1, lanes};
  double best_cost = 1e300;
  for (std::int64_t vectors = 1; vectors <= std::max<std::int64_t>(4, registers / 2); ++vectors) {
    if (fixed_columns > 0 && vectors != std::max<std::int64_t>(1, fixed_columns / lanes)) continue;
    if (vectors > 1 && (vectors - 1) * lanes >= columns) break;
    for (std::int64_t r = 1; r <= std::min<std::int64_t>(rows, registers - 1); ++r) {
      if (fixed_rows == 0 && r > most_rows(e.target, row_bytes)) break;
      if (fixed_rows > 0 && r != std::min(fixed_rows, rows)) continue;
      if (!costs.fits(r, vectors) && r > 1) continue;
      const std::int64_t panels = (columns + vectors * lanes - 1) / (vectors * lanes);
      const double line = static_cast<double>(rows / r) * costs.step_cycles(r, vectors) +
                          (rows % r ? costs.step_cycles(rows % r, vectors) : 0.0);
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
  // With few rows, loading the right factor takes as long as that many products with more rows.
  const std::int64_t loading = std::clamp<std::int64_t>(few_rows / std::max<std::int64_t>(1, tiles * c.rows), 1, 8);
  const std::int64_t wanted =
      choose(e.configuration, "items", std::clamp<std::int64_t>(total * loading / item_products, 1, wanted_items));
  // Use half of the second-level cache for the data that is read repeatedly. This is either the panels of an item,
  // which are read once per tile, or, if a panel is too large for that, the rows of an item, which are read once per
  // panel.
  std::int64_t width = 0;
  for (const column_segment& segment : c.segments) width = std::max(width, segment.columns());
  const std::int64_t row_bytes = std::max<std::int64_t>(
      1, c.rows * products * neighbours_of(c.by_lane) * static_cast<std::int64_t>(storage_bytes(c.left.type, 1)));
  const std::int64_t panel_bytes =
      std::max<std::int64_t>(1, width * products * static_cast<std::int64_t>(storage_bytes(c.right.type, 1)));
  const std::int64_t half = e.target.l2_bytes / 2;
  c.panels_inside = choose(e.configuration, "panels_inside", half / panel_bytes >= 2);
  c.panels_per_item = c.panels_inside ? std::clamp<std::int64_t>(half / panel_bytes, 1, panels) : panels;
  c.tiles_per_item =
      c.panels_inside ? tiles : std::clamp<std::int64_t>(half / row_bytes, std::min<std::int64_t>(8, tiles), tiles);
  c.step_block = c.matrix ? 0 : block_of_steps(c.steps, choose(e.configuration, "tile_k", 0));
  if (c.step_block) {
    c.panels_inside = false;
    c.panels_per_item = panels;
    const std::int64_t tile_bytes =
        c.rows * width * static_cast<std::int64_t>(storage_bytes(accumulation_type(c.left.type), 1));
    c.tiles_per_item = std::clamp<std::int64_t>(partial_bytes / tile_bytes, 1, tiles);
  }
  // Minimum number of tiles that share a block of steps.
  const std::int64_t fewest_tiles = c.step_block ? std::min<std::int64_t>(c.tiles_per_item, 4) : 1;
  auto items = [&] {
    return c.batches * c.groups * phases * ((tiles + c.tiles_per_item - 1) / c.tiles_per_item) *
           ((panels + c.panels_per_item - 1) / c.panels_per_item);
  };
  while (items() < wanted && (c.panels_per_item > 1 || c.tiles_per_item > fewest_tiles)) {
    const bool enough_tiles = c.tiles_per_item > (c.panels_inside ? 8 : 2 * c.panels_per_item) && c.tiles_per_item > 4;
    std::int64_t& n = c.panels_per_item > 1 && !enough_tiles ? c.panels_per_item : c.tiles_per_item;
    n = std::max((n + 1) / 2, &n == &c.tiles_per_item ? fewest_tiles : 1);
  }
  // With a few rows, the right factor is consumed faster than memory delivers it, so prefetch it from memory. With more
  // rows, prefetch from the second-level cache.
  const std::int64_t step_bytes = width * static_cast<std::int64_t>(storage_bytes(c.right.type, 1));
  const std::int64_t ahead = tiles * c.rows <= few_rows        ? far_prefetch_bytes
                             : panel_bytes > e.target.l1_bytes ? near_prefetch_bytes
                                                               : 0;
  c.prefetch_steps = choose(e.configuration, "prefetch", ahead ? std::max<std::int64_t>(1, ahead / step_bytes) : 0);
  // Prefetch results if they have been evicted from the second-level cache since they (or the operands of a short
  // epilogue) were last used, and if computing the sums takes long enough.
  const std::int64_t result_bytes = e.anchor_result().type().element_count() *
                                    static_cast<std::int64_t>(storage_bytes(e.anchor_result().type().type, 1));
  c.fetch_results =
      result_bytes > e.target.l2_bytes / 4 && products >= fetching_products && epilogue_cost(e) <= light_epilogue;
}

namespace {

// Estimates the cycles of the whole contraction on one core: the products as in choose_tile, plus the cost of panels
// that do not stay in the second-level cache.
double cost(const kernel_emitter& e, const tile_costs& costs, const contraction_extents& x, const tile_shape& tile,
            element_type type, bool panels_inside, std::int64_t block) {
  // Bytes per cycle from the third-level cache and from memory.
  constexpr double far_bytes = 8, memory_bytes = 4;
  const auto bytes = static_cast<double>(storage_bytes(type, 1));
  const std::int64_t panels = (x.columns + tile.columns() - 1) / tile.columns(), whole = x.rows / tile.rows,
                     rest = x.rows % tile.rows, tiles = whole + (rest ? 1 : 0);
  const auto products = static_cast<double>(x.products), all_tiles = static_cast<double>(x.lines * tiles * panels);
  double cycles = static_cast<double>(x.lines * panels) * products *
                  (static_cast<double>(whole) * costs.step_cycles(tile.rows, tile.vectors) +
                   (rest ? costs.step_cycles(rest, tile.vectors) : 0));
  const double panel = products * static_cast<double>(tile.columns()) * bytes,
               half = static_cast<double>(e.target.l2_bytes) / 2,
               row = static_cast<double>(tile.rows) * products * bytes;
  const double near = block ? panel * static_cast<double>(block) / static_cast<double>(x.steps) : panel;
  if (panels_inside)
    cycles += static_cast<double>(x.lines * tiles) * row * std::max(1.0, static_cast<double>(panels) * panel / half) /
              far_bytes / 4;
  else if (near > half) cycles += all_tiles * panel / far_bytes;
  if (panels_inside && panel > half) cycles += all_tiles * panel / far_bytes;
  if (block)
    cycles += all_tiles * static_cast<double>(x.steps) / static_cast<double>(block) *
              static_cast<double>(2 * tile.rows * tile.vectors);
  return cycles + static_cast<double>(panels) * panel / memory_bytes;
}

}  // namespace

std::vector<candidate> blocking_space(const kernel_emitter& e, const contraction_extents& x, element_type type) {
  const element_type accumulation = accumulation_type(type);
  const tile_costs costs(e.target, x.loads);
  const std::int64_t registers = e.target.vector_registers,
                     lanes = std::min(x.loads.lanes ? x.loads.lanes : register_lanes(e, accumulation),
                                      static_cast<std::int64_t>(std::bit_ceil(
                                          static_cast<std::uint64_t>(std::max<std::int64_t>(x.columns, 1)))));
  std::vector<candidate> result;
  std::vector<std::int64_t> blocks{0};
  for (std::int64_t most : {64, 128, 256, 512, 1024})
    if (block_of_steps(x.steps, most)) blocks.push_back(most);
  for (std::int64_t vectors = 1;
       vectors <= std::max<std::int64_t>(4, registers / 2) && (vectors - 1) * lanes < x.columns; ++vectors)
    for (std::int64_t rows = 1; rows <= std::min(x.rows, registers - 1); ++rows) {
      // With small tiles, multiply-adds wait for the latency of earlier ones.
      const std::int64_t sums = rows * vectors;
      if (!costs.fits(rows, vectors) || (sums * 2 < registers && rows < x.rows && vectors * lanes < x.columns))
        continue;
      const tile_shape tile{rows, vectors, lanes};
      for (std::int64_t block : blocks)
        for (std::int64_t inside : {0, 1})
          for (std::int64_t unroll : {1, 2}) {
            if (block && inside) continue;
            kernel_configuration configuration{{"tile_m", rows}, {"tile_n", vectors * lanes}, {"unroll", unroll}};
            if (block) configuration["tile_k"] = block;
            else configuration["panels_inside"] = inside;
            result.push_back(
                {std::move(configuration), cost(e, costs, x, tile, type, inside, block) * (unroll == 1 ? 1 : 1.02)});
          }
    }
  return result;
}

}  // namespace kiln::cpu
