#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

#include "mlir_bridge/gpu/split_f32.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace kiln::gpu {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Shared memory besides the stages: barriers and alignment.
constexpr std::int64_t barrier_bytes = 256;
// Rows of a matrix instruction.
constexpr std::int64_t block_rows = 64;
// Registers of a consumer thread besides its sums.
constexpr std::int64_t epilogue_registers = 40;
constexpr std::int64_t most_stages = 8, most_few_stages = 16;
// Shared memory that the driver keeps for itself in each workgroup.
constexpr std::int64_t reserved_bytes = 1024;
static_assert(most_few_stages * 16 <= barrier_bytes);
constexpr std::int64_t most_f32_products = std::int64_t{1} << 26;
// Up to this many rows, all rows are one tile, and up to this many mma.sync reads weights of few columns faster: with
// fewer tiles, too few compute units ask for them. In a decoder's step, 8 rows of 2048 x 3072 (48 tiles) take 0.8 us
// less than with wgmma, 16 rows the same (H100, bench/README.md).
constexpr std::int64_t few_rows = 64, narrow_rows = 16, least_narrow_tiles = 40, most_divided_rows = 128;
constexpr std::int64_t narrowest_rows = 8, least_narrowest_tiles = 56;
// Tiles are transposed to divide k among workgroups, which must be worth it. Measured in steps of a language model on
// an H200: 8192 x 2048 gains, 2048 x 2048 loses.
constexpr std::int64_t least_exchanged_bytes = 16 << 20;
// With up to this many rows, half of a tile or more is empty, which only pays for few 16-bit rows.
constexpr std::int64_t too_few_rows = 32;

std::int64_t blocks_of(const wgmma_size& size) { return ceil_div(size.k * size.element_bytes, 128); }
std::int64_t tiles_along_m(const wgmma_tile& tile, const wgmma_size& size) {
  const auto of_image = size.image_tiles.find(tile.m);
  return of_image == size.image_tiles.end() ? ceil_div(size.m, tile.m * tile.cluster_m) : of_image->second;
}
std::int64_t tiles_of(const wgmma_tile& tile, const wgmma_size& size) {
  return tiles_along_m(tile, size) * ceil_div(size.n, tile.n * tile.cluster_n) * size.batch;
}

// Returns true if the tile can be split along k: there is a tile for each cluster and work for each of its workgroups,
// the sums fit into the memory of the stages, and each workgroup adds up whole instructions' columns.
bool splits_well(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  const std::int64_t blocks = blocks_of(size), each = ceil_div(blocks, tile.splits);
  if (size.largest || tile.cluster_m * tile.cluster_n > 1 || (tile.splits - 1) * each >= blocks) return false;
  // A second workgroup has room on each compute unit.
  if (tile.transposed)
    return tile.n / size.products % (tile.splits * 8) == 0 &&
           tiles_of(tile, size) <= resident_clusters(tile, target) * (tile.pairs ? 2 : 1);
  return (tile.divided || tile.turned
              ? completed_rows(tile) * tile.splits * (tile.in_turn() ? tile.consumers : 1) != tile.m ||
                    completed_rows(tile) % 8
              : tile.n % (tile.splits * 16)) == 0 &&
         tile.m * tile.n * 4 <= tile.stages * tile.stage_bytes() &&
         tiles_of(tile, size) <= resident_clusters(tile, target);
}

bool is_few(const wgmma_size& size) {
  return size.parts == 1 && size.element_bytes == 2 && size.m <= few_rows && size.image_tiles.empty();
}

// Returns true for rows that are so few that the tiles of a product with large weights leave many units without work:
// then k may be divided although the parts must exchange their sums. Measured with 128 rows of 8192 x 2048: 15.5 us
// instead of 19.3 on an H200, 18.8 instead of 20.1 on an H100.
bool divides_few(const wgmma_size& size) {
  return !is_few(size) && size.m <= most_divided_rows && size.parts == 1 && size.element_bytes == 2 &&
         size.batch == 1 && !size.open && size.image_tiles.empty() && size.products == 1 &&
         size.n * size.k * size.element_bytes >= least_exchanged_bytes;
}

// Returns true for rows that the other instructions pad: 17 rows of 768 x 768 take 3.3 us instead of 4.0 (H100),
// although they are few workgroups. 24 and 32 rows are as fast there.
bool pads_rows(const wgmma_size& size) {
  constexpr std::int64_t least_columns = 512;
  return is_few(size) && size.batch == 1 && size.m > narrow_rows && size.m < 2 * narrow_rows && size.m % 8 &&
         !size.open && size.n >= least_columns;
}

// Returns true if the result may be computed transposed for any number of rows.
bool may_turn(const wgmma_size& size) {
  return size.parts == 1 && size.element_bytes == 2 && !is_few(size) && size.a_k_inner && !size.open && !size.divided &&
         !size.block_sums && size.image_tiles.empty() && !size.scaled;
}

// Whole vectors of columns are stored, and the number of rows is known.
bool may_transpose(const wgmma_size& size) {
  return is_few(size) && size.a_k_inner && !size.open && size.batch == 1 && size.n / size.products % 8 == 0;
}

// Everything but the stages.
std::int64_t other_bytes(const wgmma_tile& tile, const wgmma_size& size) {
  if (tile.transposed) return barrier_bytes + exchange_bytes(tile, size.products);
  if (tile.divided || tile.turned) return barrier_bytes + tile.consumers * divided_exchange_bytes(tile);
  const std::int64_t scales = size.scaled ? block_rows * 4 : 0;
  return barrier_bytes + scales + tile.consumers * 4 * size.epilogue_bytes;
}
std::int64_t shared_bytes(const wgmma_tile& tile, const wgmma_size& size) {
  return tile.stages * tile.stage_bytes() + other_bytes(tile, size);
}

// What the estimates for few rows have in common: products and what they read overlap.
double overlapped(double multiplying, double reading) {
  constexpr double launch = 4400, of_tile = 500, overlap = 0.08;
  return launch + of_tile + std::max(multiplying, reading) + overlap * std::min(multiplying, reading);
}

// Cycles of a transposed tile's product, in one round of clusters. Fitted to whole steps of a language model on an H200
// with 8 and 32 rows of 8192 x 2048 (bench/README.md, "A llama of 1.2 B parameters"): few workgroups do not keep the
// memory busy, and those of a cluster exchange their sums.
double transposed_cost(const wgmma_tile& tile, const wgmma_size& size) {
  constexpr double of_block = 100, least = 16, copied_bytes = 80, memory_bytes = 1800, workgroup_bytes = 26;
  constexpr double of_split = 1500, sent_bytes = 16;
  const double instructions = static_cast<double>(tile.n / block_rows * 4),
               cycles = std::max(least, static_cast<double>(tile.few_rows) / 2),
               block = std::max(instructions * cycles, static_cast<double>(tile.stage_bytes()) / copied_bytes),
               workgroups = static_cast<double>(tiles_of(tile, size) * tile.splits);
  return overlapped(static_cast<double>(ceil_div(blocks_of(size), tile.splits)) * (of_block + block),
                    static_cast<double>(size.k * size.n * size.element_bytes) /
                        std::min(memory_bytes, workgroups * workgroup_bytes)) +
         of_split + static_cast<double>(tile.n * tile.few_rows * 4) / sent_bytes;
}

// Cycles of few 16-bit rows, whose matrix comes from memory: fitted to 96 kernels of 8 to 32 rows on an H100, with a
// mean error of 3 % (bench/README.md, "Products of few rows"), except `of_split`, which was 3,700: in a graph the next
// kernel's loads fill the exchange of sums. A part of k costs more than elsewhere beside so short a product.
double few_cost(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  constexpr double of_next_tile = 500, of_block = 30, stalls = 1.07, memory_bytes = 1800, of_split = 2700;
  if (tile.transposed) return transposed_cost(tile, size);
  const double waves = static_cast<double>(ceil_div(tiles_of(tile, size), resident_clusters(tile, target))),
               blocks = static_cast<double>(ceil_div(blocks_of(size), tile.splits));
  return overlapped(waves * blocks * (of_block + static_cast<double>(tile.m * tile.n * 64) / 2048 * stalls),
                    static_cast<double>(size.batch * size.k * size.n * size.element_bytes) / memory_bytes) +
         (waves - 1) * of_next_tile + (tile.splits == 1 ? 0 : of_split);
}

// --- divided tiles, from measurements on an H100 (bench/README.md, "f32 products whose weights the kernel divides")

// Products of up to so many multiply-adds are the vector unit's.
constexpr std::int64_t most_undivided_products = std::int64_t{1} << 25;

// Returns the fewest rows for which other kernels are slower. 8 and 16 rows of 2048 x 8192 take 28 us instead of 40, 16
// rows of 2048 x 2048 as long as with others.
std::int64_t least_divided_rows(const wgmma_size& size) {
  constexpr std::int64_t large_weights = 32 << 20, few = 5, usual = 17;
  return size.batch == 1 && size.n * size.k * 4 >= large_weights ? few : usual;
}

// Returns the numbers of rows that tiles may have, the largest first.
std::vector<std::int64_t> divided_tile_rows(const wgmma_size& size) {
  constexpr std::int64_t most = 128, least = 16, most_more_tiles = 3;
  std::vector<std::int64_t> result{most, most / 2};
  if (!size.image_tiles.empty() || !size.a_k_inner) return result;
  result.push_back(most / 4);
  // A few tiles of equal size.
  for (std::int64_t more = 0; more <= most_more_tiles && !size.open; ++more) {
    const std::int64_t rows = ceil_div(size.m, ceil_div(size.m, most) + more);
    result.push_back(std::max(ceil_div(rows, least) * least, least));
  }
  std::ranges::sort(result, std::greater());
  result.erase(std::ranges::unique(result).begin(), result.end());
  return result;
}

// Estimates the cycles of a product: each workgroup multiplies so many blocks of k for each of its tiles (`waves`).
// While one warpgroup multiplies, the other one divides its weights.
double divided_cost(const wgmma_tile& tile, double blocks, double waves) {
  constexpr double launch = 2600, dividing = 950, of_block = 150, of_sum = 4500.0 / (128 * 128), of_split = 4400,
                   sent_bytes = 56;
  const double multiplying = static_cast<double>(part_products.size()) * static_cast<double>(tile.m * 64 * 64) / 2048;
  const double of_both = std::max(2 * multiplying, multiplying + dividing),
               block = of_block + (tile.in_turn() ? of_both / 2 : of_both), sums = static_cast<double>(tile.m * tile.n);
  return launch + waves * (blocks * block + of_sum * sums) + (tile.splits == 1 ? 0 : of_split + 4 * sums / sent_bytes);
}

// Returns the cycles of a block of a turned tile: those of the products, or of shared memory, which brings 128 bytes a
// cycle. Each instruction reads 64 columns and all rows of the tile, and all of it is written once.
double turned_block(const wgmma_tile& tile, double multiplying) {
  const std::int64_t read = tile.n / block_rows * (block_rows + tile.m) * 128, written = (tile.n + tile.m) * 128;
  return std::max(multiplying, static_cast<double>(read + written) / 128);
}

// Estimates the cycles of the whole product, fitted to measurements on an H200 (bench/gpu/wgmma_check.py: 1024^3 to
// 8192^3 and less square ones). The matrix unit multiplies 2048 pairs of 16-bit elements per cycle, or twice as many of
// 8 bits; the rest is overhead per block, per tile and per launch.
double cost(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  constexpr double launch = 1900, of_tile = 500, of_block = 90, stalls = 1.07, shared_stalls = 1.1, of_split = 1500;
  if (is_few(size)) return few_cost(tile, size, target);
  const double blocks = static_cast<double>(ceil_div(blocks_of(size), tile.splits));
  const double waves = static_cast<double>(ceil_div(tiles_of(tile, size), resident_clusters(tile, target)));
  if (tile.divided) return divided_cost(tile, blocks, waves);
  const double products = tile.parts > 1 ? static_cast<double>(part_products.size()) : 1;
  const double multiplying = of_block + products * static_cast<double>(tile.m * tile.n * 64) / 2048 *
                                            (tile.cluster() > 1 ? shared_stalls : stalls),
               block = tile.turned ? turned_block(tile, multiplying) : multiplying;
  // What a workgroup sends of its sums; those of f32 products were measured without.
  constexpr double sent_bytes = 16;
  const double sending = divides_few(size) ? static_cast<double>(tile.m * tile.n * 4) / sent_bytes : 0;
  return launch + waves * (blocks * block + of_tile) + (tile.splits == 1 ? 0 : of_split + sending);
}

struct tile_row {
  std::int64_t m, n, consumers;
};
// Three consumers have 128 registers each. Tiles of `few_columns` are for products that fill the device once: 512 rows
// of 2048 x 3072 take 11.8 us instead of 13.5 (H200).
constexpr std::int64_t few_columns = 96;
constexpr auto tile_rows = std::to_array<tile_row>({{128, 256, 2},
                                                    {256, 128, 2},
                                                    {192, 128, 3},
                                                    {128, 128, 2},
                                                    {128, few_columns, 2},
                                                    {192, 64, 3},
                                                    {128, 64, 2},
                                                    {64, 256, 1},
                                                    {64, 128, 1},
                                                    {64, 64, 1}});
// Measured for 16-bit elements only.
bool applies(const tile_row& row, const wgmma_size& size, const target_row& target) {
  const bool halves = size.parts == 1 && size.element_bytes == 2;
  if (row.n != few_columns) return row.consumers < 3 || halves;
  const std::int64_t tiles = ceil_div(size.m, row.m) * ceil_div(size.n, row.n) * size.batch;
  return halves && !size.open && !is_few(size) && size.image_tiles.empty() && tiles <= target.gpu.compute_units;
}
std::vector<tile_row> tile_rows_of(const wgmma_size& size, const target_row& target) {
  std::vector<tile_row> result;
  if (size.divided) {
    for (const std::int64_t m : divided_tile_rows(size))
      for (const std::int64_t n : {2 * block_rows, block_rows}) result.push_back({m, n, 2});
    return result;
  }
  std::ranges::copy_if(tile_rows, std::back_inserter(result),
                       [&](const tile_row& row) { return applies(row, size, target); });
  return result;
}
// Returns the numbers of rows that turned tiles may have: a few tiles of equal size. With few rows, shared memory is
// the limit (turned_block).
constexpr std::int64_t least_turned_rows = 128;
std::vector<std::int64_t> turned_tile_rows(const wgmma_size& size) {
  constexpr std::int64_t most = 256, least = 104, most_more_tiles = 4;
  std::vector<std::int64_t> result;
  for (std::int64_t more = 0; more <= most_more_tiles && may_turn(size); ++more) {
    const std::int64_t rows = ceil_div(ceil_div(size.m, ceil_div(size.m, most) + more), 8) * 8;
    if (rows >= least && (result.empty() || rows < result.back())) result.push_back(rows);
  }
  return result;
}
constexpr std::array<std::array<std::int64_t, 2>, 6> clusters{{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}};

// Returns true if pairs of workgroups should copy the columns of two products together. In long runs of many tiles the
// device's power limits its clock, and then fewer copies are faster: gate and up of 2,048 and 8,192 rows of 2048 x 8192
// take 0.98 and 0.97 of the time (H100). Tiles of one product gain nothing.
bool shares_weights(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  wgmma_tile shared = tile;
  shared.cluster_m = 2;
  return size.products == 2 && !size.open && tile.cluster() == 1 && tiles_along_m(tile, size) % 2 == 0 &&
         tiles_of(tile, size) >= 4 * resident_clusters(tile, target) && legal(shared, size, target);
}

// Returns true if a compute unit has registers for two workgroups.
bool fits_twice(const wgmma_tile& tile, const target_row& target) {
  return (tile.registers() + epilogue_registers) * 2 * tile.threads() <= target.gpu.register_file;
}

void fill_stages(wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  // A copy brings the rows that A has, rounded up to 8. The instructions always read tile.m rows: what follows in
  // shared memory is then the tile of B, whose sums with it nobody stores. So both tiles together must have that many
  // rows.
  const std::int64_t rows = ceil_div(size.m, 8) * 8;
  const bool few = size.parts == 1 && size.a_k_inner && size.image_tiles.empty() &&
                   (tile.transposed || (rows < tile.m && rows + tile.n >= tile.m)) &&
                   tile.cluster_m * tile.cluster_n == 1;
  // What the tensor map brings depends on an open number of rows (wgmma_kernel.cpp), the memory for it does not.
  tile.few_rows = few && !size.open ? rows : 0;
  // Small weights are in a near cache and need no time of others.
  constexpr std::int64_t least_early_bytes = 1 << 20;
  tile.pairs = (few || size.open) && is_few(size) && size.batch == 1 && target.gpu.dependent_launch &&
               size.n * size.k * size.element_bytes >= least_early_bytes && fits_twice(tile, target);
  const bool small =
      tile.consumers == 1 && tile.cluster() == 1 && tile.parts == 1 && !is_few(size) && size.image_tiles.empty();
  tile.per_unit = size.open && small && fits_twice(tile, target) ? 2 : 1;
  const std::int64_t room =
      tile.pairs || tile.per_unit == 2 ? (target.gpu.lds_bytes - reserved_bytes) / 2 : target.gpu.lds_bytes;
  tile.stages = std::clamp<std::int64_t>((room - other_bytes(tile, size)) / tile.stage_bytes(), 1,
                                         is_few(size) ? most_few_stages : most_stages);
}

}  // namespace

double wgmma_cost(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  return cost(tile, size, target);
}

std::int64_t resident_clusters(const wgmma_tile& tile, const target_row& target) {
  // All blocks of a cluster run on one GPC, which has 16 or 18 compute units, so clusters of 4 leave some units idle.
  // On an H100, 32 clusters of 4 need two rounds.
  const std::int64_t units = tile.cluster() > 2 ? target.gpu.compute_units / 8 * 7 : target.gpu.compute_units;
  return std::max<std::int64_t>(1, units / tile.cluster());
}

bool legal(const wgmma_tile& tile, const wgmma_size& size, const target_row& target) {
  const bool pieces = tile.m > 0 && tile.n > 0 && tile.consumers >= 1 && tile.consumers <= 3 && tile.m <= 256 &&
                      tile.n <= 256 && tile.divided == size.divided &&
                      (tile.turned ? tile.m % 8 == 0 && tile.consumers == 2 && tile.n == 2 * block_rows * size.products
                       : tile.divided ? tile.m % (tile.in_turn() ? 16 : 8) == 0 && tile.consumers == 2 &&
                                            (tile.n == block_rows || tile.n == 2 * block_rows)
                                      : tile.m % (tile.consumers * block_rows) == 0 && tile.n % 32 == 0);
  if (!pieces || tile.stages < 2 || tile.cluster() < 1 || tile.cluster() > 8 || tile.group < 1) return false;
  if (tile.splits < 1 || (tile.splits > 1 && !splits_well(tile, size, target))) return false;
  // Each workgroup of a cluster copies an equal part of the shared data: whole patterns of 8 rows, or whole boxes of 64
  // rows.
  if (tile.m % (tile.cluster_n * (size.a_k_inner ? 8 : 64)) || tile.n % (tile.cluster_m * (size.b_k_inner ? 8 : 64)))
    return false;
  if (tile.divided && (tile.cluster_m * tile.cluster_n > 1 || tile.transposed || size.products > 1 || size.scaled))
    return false;
  if (tile.turned && !may_turn(size)) return false;
  if (size.products > 1 || size.scaled) {
    // The squares of rows are summed by the one warpgroup that multiplies them.
    const bool sums_squares = is_few(size) && tile.m == block_rows && tile.consumers == 1;
    if (size.scaled && (!sums_squares || tile.cluster_m * tile.cluster_n > 1)) return false;
    if (tile.splits > 1 && !tile.transposed) return false;
    if (tile.n % (size.products * tile.cluster_m * block_rows)) return false;
  }
  if (tile.few_rows && ((!tile.transposed && tile.few_rows + tile.n < tile.m) || tile.cluster_m * tile.cluster_n > 1))
    return false;
  if (tile.transposed && !(may_transpose(size) && tile.m == block_rows && tile.consumers == 1 && tile.few_rows &&
                           tile.n % (size.products * block_rows) == 0))
    return false;
  if (!size.image_tiles.empty() && (tile.cluster_m * tile.cluster_n > 1 || !size.image_tiles.contains(tile.m)))
    return false;
  if (size.element_bytes == 1 && (!size.a_k_inner || !size.b_k_inner)) return false;
  // With two consumers, they can take registers from the producer warpgroup (wgmma_kernel.cpp). Otherwise all threads
  // have the same number.
  const std::int64_t registers =
      tile.consumers == 2 ? 232
                          : std::min<std::int64_t>(target.gpu.registers, target.gpu.register_file / tile.threads());
  if (tile.registers() + epilogue_registers > registers) return false;
  return shared_bytes(tile, size) <= target.gpu.lds_bytes;
}

std::vector<wgmma_tile> wgmma_candidates(const wgmma_size& size, const target_row& target) {
  std::vector<wgmma_tile> result;
  const std::vector<tile_row> rows = tile_rows_of(size, target);
  for (const tile_row& row : rows)
    for (const auto& cluster : clusters) {
      wgmma_tile tile{.m = row.m,
                      .n = row.n,
                      .consumers = row.consumers,
                      .cluster_m = cluster[0],
                      .cluster_n = cluster[1],
                      .parts = size.parts,
                      .divided = size.divided,
                      .block_sums = size.block_sums};
      fill_stages(tile, size, target);
      // Skip clusters that are not fully used: workgroups without a tile would only help to copy.
      if (ceil_div(size.m, tile.m) % tile.cluster_m || ceil_div(size.n, tile.n) % tile.cluster_n) continue;
      if (legal(tile, size, target)) result.push_back(tile);
    }
  for (const tile_row& row : rows)
    for (std::int64_t splits : {2, 4, 8}) {
      wgmma_tile tile{.m = row.m,
                      .n = row.n,
                      .consumers = row.consumers,
                      .splits = splits,
                      .parts = size.parts,
                      .divided = size.divided,
                      .block_sums = size.block_sums};
      fill_stages(tile, size, target);
      if (legal(tile, size, target)) result.push_back(tile);
    }
  for (const std::int64_t m : turned_tile_rows(size)) {
    // The workgroups of two tiles of rows copy the columns together: 197 rows of 2048 x 8192 take 14.0 instead of 17.2
    // us (H200).
    wgmma_tile tile{.m = m, .n = 2 * block_rows * size.products, .turned = true};
    if (ceil_div(size.m, m) == 2) tile.cluster_m = 2;
    else if (m < least_turned_rows) continue;
    fill_stages(tile, size, target);
    if (legal(tile, size, target)) result.push_back(tile);
    tile.cluster_m = 1, tile.splits = 2;
    fill_stages(tile, size, target);
    if (legal(tile, size, target)) result.push_back(tile);
  }
  for (std::int64_t n : {64, 128})
    for (std::int64_t splits : {2, 4, 8}) {
      if (size.n * size.k * size.element_bytes < least_exchanged_bytes) continue;
      wgmma_tile tile{.m = block_rows, .n = n, .transposed = true, .consumers = 1, .splits = splits};
      fill_stages(tile, size, target);
      if (legal(tile, size, target)) result.push_back(tile);
    }
  return result;
}

std::vector<codegen::candidate> wgmma_configurations(const wgmma_size& size, const target_row& target) {
  std::vector<codegen::candidate> result;
  for (const wgmma_tile& t : wgmma_candidates(size, target)) {
    result.push_back({{{"wgmma", 1},
                       {"tile_m", t.m},
                       {"tile_n", t.n},
                       {"stages", t.stages},
                       {"consumers", t.consumers},
                       {"cluster_m", t.cluster_m},
                       {"cluster_n", t.cluster_n},
                       {"splits", t.splits},
                       {"transposed", t.transposed}},
                      cost(t, size, target)});
    if (t.turned) result.back().configuration["turned"] = 1;
  }
  return result;
}

std::optional<wgmma_tile> choose_wgmma_tile(const wgmma_size& size, const target_row& target,
                                            const kernel_configuration& configuration) {
  const std::int64_t wanted = choose(configuration, "wgmma", -1);
  // A configuration that has another generator's names, or a tile but not "wgmma", belongs to that generator.
  const bool others = configuration.contains("tile_m") || configuration.contains("narrow_columns");
  if (wanted == 0 || (wanted < 0 && others)) return std::nullopt;
  auto all = wgmma_candidates(size, target);
  // For f32 products, few rows and long sums it pays to divide k, although the parts must exchange their sums.
  const bool divides = size.parts > 1 || is_few(size) || divides_few(size);
  const auto was_measured = [&](const wgmma_tile& tile) { return tile.m == 128 && tile.n == 128 && tile.splits == 4; };
  std::erase_if(all, [&](const wgmma_tile& tile) {
    return (!tile.turned && tile.cluster() > (divides ? tile.splits : 1)) ||
           (divides_few(size) && tile.splits > 1 && !was_measured(tile));
  });
  // Turned tiles must be worth it, because what is known of the others was measured for longer. Weights that pairs copy
  // once come from memory sooner: 256 rows of 2048 x 8192 take 15.6 to 16.2 instead of 17.4 to 18.1 us (H200).
  const auto weight = [&](const wgmma_tile& tile) {
    constexpr double least_gain = 0.95, gain_of_pairs = 1.05;
    if (!tile.turned) return 1.0;
    return tile.cluster_m == 2 && size.products == 1 ? 1 / gain_of_pairs : 1 / least_gain;
  };
  auto best = std::ranges::min_element(all, {},
                                       [&](const wgmma_tile& tile) { return cost(tile, size, target) * weight(tile); });
  if (best == all.end()) return std::nullopt;
  // Small products do not fill the pipeline of one workgroup per compute unit. Those of f32 take longer, so what their
  // tiles fill counts, and images that do not fill the device are better divided into smaller tiles.
  const bool image = !size.image_tiles.empty();
  const std::int64_t used = tiles_of(*best, size) * best->splits,
                     workgroups = size.parts > 1
                                      ? used
                                      : ceil_div(size.m, 64) * ceil_div(size.n, 64) * size.batch * best->splits,
                     least_rows = is_few(size) && size.batch == 1 ? 1
                                  : size.divided                  ? least_divided_rows(size) - 1
                                                                  : too_few_rows;
  const std::int64_t least_tiles = size.m <= narrowest_rows ? least_narrowest_tiles : least_narrow_tiles;
  const bool too_narrow =
      size.m <= narrow_rows && ceil_div(size.n, 64) < least_tiles && (!best->transposed || size.m == 1);
  if (wanted < 0 && image && size.parts == 1 && used * 5 < target.gpu.compute_units) return std::nullopt;
  // The vector unit does small f32 products before their operands are split.
  if (wanted < 0 && size.parts > 1 &&
      size.batch * size.m * size.n * size.k <= (size.divided ? most_undivided_products : most_f32_products))
    return std::nullopt;
  const bool too_few = workgroups * 8 < target.gpu.compute_units && !pads_rows(size);
  if (wanted < 0 &&
      (size.m <= least_rows || too_narrow || size.n <= 32 || size.k * size.element_bytes < 256 || too_few))
    return std::nullopt;

  wgmma_tile tile = *best;
  if (shares_weights(tile, size, target)) tile.cluster_m = 2;
  tile.m = choose(configuration, "tile_m", tile.m);
  tile.n = choose(configuration, "tile_n", tile.n);
  if (configuration.contains("tile_m")) tile.consumers = tile.divided || tile.m >= 128 ? 2 : 1;
  tile.consumers = choose(configuration, "consumers", tile.consumers);
  tile.cluster_m = choose(configuration, "cluster_m", configuration.contains("tile_m") ? 1 : tile.cluster_m);
  tile.cluster_n = choose(configuration, "cluster_n", configuration.contains("tile_m") ? 1 : tile.cluster_n);
  tile.splits = choose(configuration, "splits", configuration.contains("tile_m") ? 1 : tile.splits);
  tile.transposed = choose(configuration, "transposed", configuration.contains("tile_m") ? 0 : tile.transposed) != 0;
  tile.turned = choose(configuration, "turned", configuration.contains("tile_m") ? 0 : tile.turned) != 0;
  if (tile.turned) tile.consumers = 2;
  fill_stages(tile, size, target);
  tile.stages = choose(configuration, "stages", tile.stages);
  // If all tiles run at the same time, their order does not matter. Without the grouping there is one division less,
  // which saves a register for epilogues that need many.
  tile.group = choose(configuration, "group", tiles_of(tile, size) <= resident_clusters(tile, target) ? 1 : tile.group);
  tile.bounded = choose(configuration, "bounded", 0) != 0;
  if (!legal(tile, size, target)) return std::nullopt;
  return tile;
}

}  // namespace kiln::gpu
