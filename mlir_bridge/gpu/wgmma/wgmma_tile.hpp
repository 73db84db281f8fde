// The division of a matrix product by the wgmma kernel: tiles of workgroups and clusters, warpgroups, pipeline depth.
// Plain data, and its choice by resource limits and estimated cycles. Internal to mlir_bridge/gpu.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/element_type.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

struct wgmma_tile {
  // Tile of a workgroup.
  std::int64_t m = 128, n = 256;
  // Rows of A in shared memory, if the product has no more; 0: all of the tile. The instructions then multiply what
  // follows, too, and nobody reads those sums.
  std::int64_t few_rows = 0;
  // Leaves room for a second workgroup on each compute unit, so that the next kernel's can read its weights while this
  // one ends, as this one's did.
  bool pairs = false;
  // Workgroups of the kernel on each compute unit. Two of them finish a number of tiles that is not a multiple of the
  // units earlier: 156 tiles on 132 units are then no second round of 24.
  std::int64_t per_unit = 1;
  // The instructions compute the transposed result: their rows are columns of B, 64 each, and their columns the few
  // rows of A, rounded up to 8, so that none of their products is wasted. `m` and `consumers` are those of one
  // instruction.
  bool transposed = false;
  // Number of blocks of 128 bytes of k in shared memory.
  std::int64_t stages = 4;
  // Warpgroups that multiply. One more warpgroup copies.
  std::int64_t consumers = 2;
  // Workgroups that share copies: of A along n, of B along m.
  std::int64_t cluster_m = 1, cluster_n = 1;
  std::int64_t splits =
      1;  // workgroups of a cluster that share a tile's k and add up their sums; then no copies are shared
  // Rows of clusters that are visited together, for reuse in the L2 cache.
  std::int64_t group = 8;
  // Waits end with an error instead of hanging; used when a kernel is tried.
  bool bounded = false;
  // Matrices that each operand consists of (f32: 3), all of which are in a stage.
  std::int64_t parts = 1;
  // B is f32 in shared memory, and the warps divide it into parts in registers (divided_weights.hpp). The instructions
  // then compute the transposed result: their rows are 64 columns of B, and their columns the tile's rows of A, a
  // multiple of 8. Two consumers have 64 columns each, or they take blocks of k of the same 64 columns in turn.
  bool divided = false;
  // The instructions compute the transposed result of 16-bit factors: their rows are 64 columns of each product for
  // each of two consumers, and their columns the tile's rows, a multiple of 8. So a number of rows that is no multiple
  // of 64 is divided into equal tiles, none of whose products are wasted.
  bool turned = false;
  // Each block of k has sums of its own, which the vector unit adds up: the matrix unit keeps few bits of long sums.
  bool block_sums = false;

  friend bool operator==(const wgmma_tile&, const wgmma_tile&) = default;
  std::int64_t cluster() const { return cluster_m * cluster_n * splits; }
  std::int64_t threads() const { return (consumers + 1) * 128; }
  bool in_turn() const { return divided && n < consumers * 64; }
  std::int64_t row_blocks() const { return m / consumers / 64; }
  // Registers that the sums take in a consumer thread.
  std::int64_t sums() const {
    return transposed ? n * few_rows / 128 : divided ? m / 2 : turned ? m / 2 * (n / 128) : row_blocks() * n / 2;
  }
  // The sums, and what a thread has of a divided block of 64 columns and 64 elements of k.
  std::int64_t registers() const { return (block_sums ? 2 * sums() : sums()) + (divided ? parts * 16 : 0); }
  std::int64_t a_rows() const { return few_rows ? few_rows : m; }
  std::int64_t stage_bytes() const { return divided ? (a_rows() * parts + 2 * n) * 128 : (a_rows() + n) * 128 * parts; }
};

// Transposed tiles exchange their sums in shared memory (transposed_epilogue.hpp): columns of each product that a
// workgroup completes, and the distance of rows of so many columns, such that no two threads store to one bank.
constexpr std::int64_t exchanged_columns(const wgmma_tile& tile, std::int64_t products) {
  return tile.n / products / tile.splits;
}
constexpr std::int64_t exchange_pitch(std::int64_t columns) { return columns + 4; }
// Bytes of this memory, with the sums of squares of the rows.
constexpr std::int64_t exchange_bytes(const wgmma_tile& tile, std::int64_t products) {
  return tile.splits * tile.few_rows * (products * exchange_pitch(exchanged_columns(tile, products)) + 1) * 4;
}

// A consumer warpgroup of a divided or turned tile completes so many rows. It passes their sums through shared memory
// (divided_epilogue.hpp), at most divided_rows at a time, which have 64 columns each. Consumers that take turns first
// exchange half of their sums there.
constexpr std::int64_t completed_rows(const wgmma_tile& tile) {
  return tile.m / tile.splits / (tile.in_turn() ? tile.consumers : 1);
}
inline constexpr std::int64_t divided_rows = 64, divided_pitch = exchange_pitch(64);
constexpr std::int64_t divided_exchange_bytes(const wgmma_tile& tile) {
  const std::int64_t of_rows = std::min(divided_rows, completed_rows(tile)) * divided_pitch * 4;
  return tile.in_turn() ? std::max(of_rows, tile.m * 64 * 4 / tile.consumers) : of_rows;
}

// The properties of a product that the choice depends on.
struct wgmma_size {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;  // n: columns of all products
  std::int64_t element_bytes = 2;
  bool a_k_inner = true, b_k_inner = true;
  // Shared memory of one consumer warp.
  std::int64_t epilogue_bytes = 0;
  std::int64_t parts = 1;
  bool block_sums = false, divided = false;  // as in wgmma_tile
  // For images: rows of a tile → tiles along m. Empty for other products.
  std::map<std::int64_t, std::int64_t> image_tiles = {};
  // Products of the same rows, whose columns a tile has equal parts of.
  std::int64_t products = 1;
  // The squares of the rows are summed, too.
  bool scaled = false;
  // The number of rows is open, and m is a sample of it; and no larger one follows, so that the tile must suit all.
  bool open = false, largest = false;
};

// Estimates the cycles of the whole product.
double wgmma_cost(const wgmma_tile& tile, const wgmma_size& size, const target_row& target);

// Returns how many clusters run at the same time, with one workgroup per compute unit.
std::int64_t resident_clusters(const wgmma_tile& tile, const target_row& target);

// Returns true if registers, shared memory and the shapes of instructions and copies allow the tile.
bool legal(const wgmma_tile& tile, const wgmma_size& size, const target_row& target);

// Returns all legal tiles worth measuring.
std::vector<wgmma_tile> wgmma_candidates(const wgmma_size& size, const target_row& target);
// Returns the same tiles as a tuning space, ordered by the same cost.
std::vector<codegen::candidate> wgmma_configurations(const wgmma_size& size, const target_row& target);

// Returns the tile that is expected to be fastest, changed by "tile_m", "tile_n", "stages", "consumers", "cluster_m",
// "cluster_n", "splits", "transposed", "turned", "group" and "bounded" of the configuration. Returns nullopt if the
// result is not legal or if mma.sync is expected to be faster. "wgmma" = 1 or 0 overrules this expectation; the other
// names are read only with "wgmma" = 1.
std::optional<wgmma_tile> choose_wgmma_tile(const wgmma_size& size, const target_row& target,
                                            const kernel_configuration& configuration);

}  // namespace kiln::gpu
