#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

#include <algorithm>
#include <limits>

#include "ir/error.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

// f32 products are exact; tf32 is not used.
constexpr bool allow_reduced = false;
constexpr std::int64_t most_splits = 32;

// Parts of fewer steps would not be worth adding them up.
bool divides_rounds(const tile_shape& tile) {
  constexpr std::int64_t deep = 6;  // splits, each of at least three steps
  return tile.splits >= deep;
}

// Returns true if the vector unit has instructions that multiply words of several elements.
bool has_dots(const gpu_row& row, element_type factor) {
  return (factor == element_type::f16 && row.dots != dot_unit::none) ||
         (factor == element_type::i8 && row.dots == dot_unit::f16_and_i8);
}

// Returns the multiply-adds of one compute unit per cycle.
double rate(const gpu_row& row, const tile_shape& tile, const product_types& types) {
  const int bits = storage_bits(types.factor);
  if (!tile.instruction) {
    if (bits == 64) return 32;
    return has_dots(row, types.factor) ? 64.0 * 32 / bits * 2 : 100;
  }
  switch (row.matrix) {
    case matrix_unit::mfma_gfx908: return bits == 32 ? 128 : types.factor == element_type::bf16 ? 256 : 512;
    case matrix_unit::mfma_gfx90a: return bits == 32 ? 256 : 1024;
    case matrix_unit::mfma_gfx942: return bits == 32 ? 256 : 1024.0 * 16 / bits;
    case matrix_unit::mfma_gfx950: return bits == 32 ? 256 : 2048.0 * 16 / bits;
    case matrix_unit::wmma_gfx11: return 256;
    case matrix_unit::wmma_gfx12: return 512.0 * 16 / bits;
    case matrix_unit::mma_sm75: return 512.0 * 16 / bits;
    default: return 1024.0 * 16 / bits;
  }
}

// Estimates the 32-bit registers of one thread.
std::int64_t registers(const tile_shape& tile, const gpu_row& row, const problem_size& size) {
  const product_types& types = size.types;
  const bool scattered_a = size.a_piece < elements_of_chunk(types.factor),
             scattered_b = size.b_piece < elements_of_chunk(types.factor);
  const std::int64_t threads = tile.threads(row);
  std::int64_t result = 40 + tile.m * tile.n / threads * (storage_bits(types.sum) / 32);
  if (is_shifted(row, types)) result += tile.instruction ? tile.part_n * tile.instruction->m / row.wave : tile.part_n;
  // Elements that are loaded one by one take a register each until they are combined.
  if (!tile.async)
    result += (tile.m * (scattered_a ? 3 : 1) + tile.n * (scattered_b ? 3 : 1)) * tile.chunks * 4 / threads;
  if (const matrix_instruction* unit = tile.instruction) {
    auto fragments = [](const factor_map& map, std::int64_t tiles) {
      return tiles * map.parts * (map.whole_row ? map.chunks : 1) * 4;
    };
    // LLVM prefetches the next group of chunks; ptxas does so only if registers are left.
    const std::int64_t once = fragments(unit->a, tile.part_m / unit->m) + fragments(unit->b, tile.part_n / unit->n);
    const bool nvidia = unit->unit == matrix_unit::mma_sync || unit->unit == matrix_unit::mma_sm75;
    result += tile.chunks > unit->a.chunks && !nvidia ? 2 * once : once;
  } else {
    result += (tile.part_m + tile.part_n) * 4 *
              (has_dots(row, types.factor) ? 1 : std::max(1, 32 / storage_bits(types.factor)));
  }
  return result;
}

std::int64_t shared_bytes(const tile_shape& tile, const product_types& types) {
  // There must be room for at least one slab (multiplier.hpp).
  const std::int64_t element = storage_bits(types.sum) / 8;
  const std::int64_t slab = tile.instruction ? tile.parts() * tile.instruction->m * (tile.part_n + 4) * element
                                             : tile.m / tile.part_m * (tile.n + 4) * element;
  return std::max(tile.stages * tile.stage_bytes(), slab);
}

// Cycles of a tile.
struct estimate {
  // Until the last workgroup has finished.
  double cycles = 0;
  // Of the loop, if loads from memory took no time.
  double work = 0;
};

// The constants were fitted to 200 kernels on an H200 (bench/gpu/gemm.py); estimates are within 30 % of the measured
// times.
estimate estimated(const tile_shape& tile, const target_row& target, const problem_size& size) {
  const gpu_row& row = target.gpu;
  const std::int64_t threads = tile.threads(row), depth = tile.chunks * elements_of_chunk(size.types.factor);
  const std::int64_t splits = splits_at(tile, size), steps = ceil_div(ceil_div(size.k, depth), splits);
  const std::int64_t workgroups = size.batch * ceil_div(size.m, tile.m) * ceil_div(size.n, tile.n) * splits;
  // Bytes or elements per cycle; round_trip in cycles.
  const double lds_rate = 128, memory_rate = 48, round_trip = 900, scattered_rate = 12;
  // The cycles that one step of a workgroup takes on its compute unit.
  const double multiply = static_cast<double>(tile.m * tile.n * depth) / rate(row, tile, size.types);
  // Number of lanes that read the same data.
  const double repeated = tile.instruction && tile.instruction->a.whole_row ? 2 : 1;
  const double shared = static_cast<double>(tile.parts() * (tile.part_m + tile.part_n) + tile.m + tile.n) *
                        static_cast<double>(tile.chunks * chunk_bytes) / lds_rate * repeated /
                        (tile.instruction ? 1 : 8);
  const double memory = static_cast<double>(tile.stage_bytes()) / memory_rate;
  const auto scattered_rows = static_cast<double>((size.a_piece == 1 ? tile.m : 0) + (size.b_piece == 1 ? tile.n : 0));
  const double busy =
      std::max({multiply, shared, memory}) + scattered_rows * static_cast<double>(depth) / scattered_rate + 40;

  const std::int64_t resident = std::max<std::int64_t>(
      1, std::min({row.lds_bytes / shared_bytes(tile, size.types),
                   row.register_file / std::max<std::int64_t>(1, threads * registers(tile, row, size)),
                   std::int64_t{2048} / threads}));
  const std::int64_t per_unit = ceil_div(workgroups, row.compute_units), together = std::min(per_unit, resident),
                     rounds = ceil_div(per_unit, together);
  // A wave copies its share and then multiplies, both on one quarter of the compute unit. Only waves of the same
  // quarter can hide its latency.
  const double waves = static_cast<double>(threads) / row.wave;
  const double reuse = static_cast<double>(tile.part_m * tile.part_n) / static_cast<double>(tile.part_m + tile.part_n);
  const double alone = static_cast<double>((tile.m + tile.n) * tile.chunks) / static_cast<double>(threads) * 30 +
                       multiply * 4 / waves * (tile.instruction ? 0.85 + 7 / reuse : 1.25);
  const double latency = round_trip / (tile.async ? static_cast<double>(tile.stages - 1) : 1.0);
  const double work =
      std::max(busy * static_cast<double>(together), alone * std::max(1.0, waves * static_cast<double>(together) / 4));
  const double step = std::max(work, latency);
  const double ends = 3200 + static_cast<double>(tile.m * tile.n * 8) / lds_rate;
  const double combine =
      splits == 1 ? 0 : 3500 + static_cast<double>(tile.m * tile.n * 4) * (1 + static_cast<double>(splits)) / 48;
  const auto turns = static_cast<double>(rounds * steps);
  return {turns * step + static_cast<double>(rounds) * ends + combine, turns * work};
}

double cost(const tile_shape& tile, const target_row& target, const problem_size& size) {
  return estimated(tile, target, size).cycles;
}

void set(std::int64_t& field, const kernel_configuration& configuration, const char* name) {
  field = choose(configuration, name, field);
}

}  // namespace

dim shared_among(const tile_shape& tile, const dim& tiles) {
  const dim each = dim::max(dim::min(tile.slots / tiles, tile.splits), 1);
  if (!divides_rounds(tile)) return each;
  const auto above = [&](std::int64_t limit) { return dim::min(tiles, limit + 1) / (limit + 1); };
  const std::int64_t slots = tile.slots;
  // Workgroups run in rounds of `slots`. Where there are more tiles than half of the slots, but at most 2/3 of them, a
  // tile in three parts takes two rounds of a third of its time instead of one whole round. For more tiles than slots:
  // up to 4/3, three parts take four thirds instead of two rounds; up to 3/2, two parts take three halves.
  return each + 2 * (above(slots / 2) - above(slots * 2 / 3)) + 2 * (above(slots) - above(slots * 4 / 3)) +
         above(slots * 4 / 3) - above(slots * 3 / 2);
}

std::int64_t most_divided_tiles(const tile_shape& tile) {
  return divides_rounds(tile) ? tile.slots * 3 / 2 : tile.slots;
}

std::int64_t splits_at(const tile_shape& tile, const problem_size& size) {
  if (!tile.slots) return tile.splits;
  const std::int64_t tiles = ceil_div(size.m, tile.m) * ceil_div(size.n, tile.n),
                     steps = ceil_div(size.k, tile.chunks * elements_of_chunk(size.types.factor));
  return ceil_div(steps, ceil_div(steps, shared_among(tile, size.batch * tiles).value()));
}

double staged_cost(const tile_shape& tile, const target_row& target, const problem_size& size) {
  return cost(tile, target, size);
}

bool legal(const tile_shape& tile, const target_row& target, const problem_size& size) {
  const gpu_row& row = target.gpu;
  if (tile.part_m < 1 || tile.part_n < 1 || tile.m % tile.part_m || tile.n % tile.part_n || tile.splits < 1 ||
      tile.stages < 1 || (size.open && tile.splits != 1 && !tile.slots))
    return false;
  if (tile.chunks != 2 && tile.chunks != 4 && tile.chunks != 8 && tile.chunks != 16) return false;
  if (tile.async ? tile.stages < 3 : tile.stages > 2) return false;
  if (tile.async && (!row.async_copy || !size.plain)) return false;
  if (const matrix_instruction* unit = tile.instruction)
    if (tile.part_m % unit->m || tile.part_n % unit->n || tile.chunks % unit->a.chunks) return false;
  const std::int64_t threads = tile.threads(row);
  if (threads > std::min(row.max_threads, 512) || threads % row.wave) return false;
  if (shared_bytes(tile, size.types) > row.lds_bytes) return false;
  // Each piece of a chunk keeps its condition in scalar registers while it is loaded.
  const std::int64_t pieces =
      tile.m * tile.chunks / threads * ceil_div(elements_of_chunk(size.types.factor), size.a_piece);
  if (size.a_piece < elements_of_chunk(size.types.factor) && pieces > 24) return false;
  const std::int64_t most = std::min<std::int64_t>(row.registers, row.register_file / threads);
  // The compiler needs a varying number of other registers. With this reserve, no kernel of the tests spills.
  return registers(tile, row, size) <= (target.family == target_family::nvidia ? most * 19 / 20 : most * 7 / 10);
}

std::vector<tile_shape> candidates(const target_row& target, const problem_size& size) {
  std::vector<const matrix_instruction*> units =
      find_matrix_instructions(target.gpu.matrix, size.types.factor, allow_reduced);
  const bool matrix = !units.empty();
  if (!matrix) units.push_back(nullptr);
  std::vector<tile_shape> result;
  auto add = [&](tile_shape tile) {
    if (legal(tile, target, size)) result.push_back(tile);
  };
  // In chunks.
  const std::int64_t depth = ceil_div(size.k, elements_of_chunk(size.types.factor));
  for (const matrix_instruction* unit : units)
    for (std::int64_t m : {16, 32, 64, 128, 256})
      for (std::int64_t n : {16, 32, 64, 128, 256}) {
        // Skip tiles that are mostly beyond the result.
        if ((m > 32 && m >= 2 * size.m) || (n > 32 && n >= 2 * size.n)) continue;
        for (std::int64_t parts_m : {1, 2, 4, 8, 16, 32})
          for (std::int64_t parts_n : {1, 2, 4, 8, 16, 32}) {
            const bool fits = unit ? parts_m * parts_n <= 8 && parts_m * parts_n >= 2
                                   : parts_m >= 4 && parts_n >= 4 && m / parts_m <= 8 && n / parts_n <= 8;
            if (!fits || m < parts_m || n < parts_n) continue;
            for (std::int64_t chunks : {4, 8})
              for (std::int64_t stages : {1, 2, 3, 4, 5}) {
                if (chunks > 4 && chunks > depth) continue;
                tile_shape tile{unit, m, n, m / parts_m, n / parts_n, chunks, stages, stages > 2, 1};
                if (size.open) {
                  // At least three steps for each workgroup.
                  tile.splits = size.known_depth ? std::clamp<std::int64_t>(depth / chunks / 3, 1, most_splits) : 1;
                  for (std::int64_t rounds : {1, 2}) {
                    tile.slots = tile.splits > 1 ? rounds * target.gpu.compute_units : 0;
                    if (rounds == 1 || tile.slots) add(tile);
                  }
                  continue;
                }
                for (std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
                  tile.splits = splits;
                  if (splits == 1 ||
                      (depth / chunks / splits >= 3 &&
                       size.batch * ceil_div(size.m, m) * ceil_div(size.n, n) * splits <= 3 * target.gpu.compute_units))
                    add(tile);
                }
              }
          }
      }
  return result;
}

tile_shape choose_tile(const target_row& target, const problem_size& size, const kernel_configuration& configuration) {
  tile_shape best;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<tile_shape> all = candidates(target, size);
  for (const tile_shape& tile : all) {
    const double c = cost(tile, target, size);
    if (c < least) least = c, best = tile;
  }
  if (least == std::numeric_limits<double>::infinity())
    throw error(error_kind::unsupported, "target '" + target.name + "' has no tile for a product of this type");
  // Where latency binds, several tiles take about as long. The latency is that of an NVIDIA GPU, and nobody measured
  // the choice on CDNA: there the tile is taken whose loop has the least work, because it is the best one if latency is
  // lower. (Loops of RDNA are bound by vector instructions, which the estimate does not know.)
  if (target.family == target_family::amdgpu && target.gpu.wave == 64 && best.instruction) {
    constexpr double as_good = 1.05;
    double least_work = std::numeric_limits<double>::infinity();
    for (const tile_shape& tile : all)
      if (const estimate e = estimated(tile, target, size); e.cycles <= as_good * least && e.work < least_work)
        least_work = e.work, best = tile;
  }
  tile_shape wanted = best;
  set(wanted.m, configuration, "tile_m");
  set(wanted.n, configuration, "tile_n");
  set(wanted.part_m, configuration, "part_m");
  set(wanted.part_n, configuration, "part_n");
  set(wanted.chunks, configuration, "chunks");
  set(wanted.stages, configuration, "stages");
  set(wanted.splits, configuration, "splits");
  wanted.async = wanted.stages > 2;
  const std::int64_t unit = choose(configuration, "instruction", -1);
  const auto units = find_matrix_instructions(target.gpu.matrix, size.types.factor, allow_reduced);
  if (unit >= 0 && unit < static_cast<std::int64_t>(units.size()))
    wanted.instruction = units[static_cast<std::size_t>(unit)];
  return legal(wanted, target, size) ? wanted : best;
}

std::vector<candidate> staged_space(const target_row& target, const problem_size& size) {
  const auto units = find_matrix_instructions(target.gpu.matrix, size.types.factor, allow_reduced);
  std::vector<candidate> result;
  for (const tile_shape& tile : candidates(target, size)) {
    kernel_configuration configuration{{"tile_m", tile.m},      {"tile_n", tile.n},      {"part_m", tile.part_m},
                                       {"part_n", tile.part_n}, {"chunks", tile.chunks}, {"stages", tile.stages},
                                       {"splits", tile.splits}};
    if (auto at = std::ranges::find(units, tile.instruction); at != units.end() && units.size() > 1)
      configuration["instruction"] = at - units.begin();
    result.push_back({std::move(configuration), cost(tile, target, size)});
  }
  return result;
}

}  // namespace kiln::gpu
