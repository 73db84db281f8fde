// The division of a contraction among workgroups, waves and threads, and the depth of its pipeline. Plain data, and its
// choice from a target's row by resource limits and estimated cycles. Internal to mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"

namespace kiln::gpu {

struct tile_shape {
  // Null for multiply-add or dot products on the vector unit.
  const matrix_instruction* instruction = nullptr;
  // Tile of a workgroup.
  std::int64_t m = 64, n = 64;
  // Part of a wave or, without a matrix instruction, of a thread.
  std::int64_t part_m = 32, part_n = 32;
  // Chunks (16 bytes along k) per row and step.
  std::int64_t chunks = 8;
  // Number of steps whose tiles are in shared memory at the same time.
  std::int64_t stages = 2;
  // Tiles are copied to shared memory without registers.
  bool async = false;
  // Number of workgroups that share a tile's depth (split-K). With `slots`, the most of them.
  std::int64_t splits = 1;
  // If it is not 0, as many workgroups share a tile's depth as there are for each tile among these: for an open number
  // of rows, which decides how many tiles there are.
  std::int64_t slots = 0;

  friend bool operator==(const tile_shape&, const tile_shape&) = default;
  std::int64_t parts() const { return (m / part_m) * (n / part_n); }
  std::int64_t threads(const gpu_row& row) const { return instruction ? parts() * row.wave : parts(); }
  std::int64_t stage_bytes() const { return (m + n) * chunks * 16; }
};

// The properties of a problem that the choice depends on.
struct problem_size {
  std::int64_t batch, m, n, k;
  product_types types;
  std::int64_t a_piece = 16, b_piece = 16;  // consecutive k that are loaded at once
  bool plain = false;                       // both operands can be copied as they are in memory
  bool open = false;                        // the real sizes are open and these are samples
  bool known_depth = true;                  // an open depth is not split
};

// Returns how many workgroups share the depth of each of `tiles` tiles, of a shape with slots: as many as there are for
// each. A deep tile is also divided if the last round of workgroups would leave most compute units idle.
dim shared_among(const tile_shape& tile, const dim& tiles);
// Returns the largest number of tiles whose depth is divided.
std::int64_t most_divided_tiles(const tile_shape& tile);
// Returns the number of workgroups that share a tile's depth at this size.
std::int64_t splits_at(const tile_shape& tile, const problem_size& size);
// Estimates the cycles until the last workgroup has finished.
double staged_cost(const tile_shape& tile, const target_row& target, const problem_size& size);

// Returns true if the target can run the tile: it has whole fragments and fits the limits on threads, shared memory and
// registers.
bool legal(const tile_shape& tile, const target_row& target, const problem_size& size);
// Return all legal tiles worth measuring, and the tile expected to be fastest. "tile_m", "tile_n", "part_m", "part_n",
// "chunks", "stages" and "splits" of the configuration overrule the choice if the result is legal.
std::vector<tile_shape> candidates(const target_row& target, const problem_size& size);
tile_shape choose_tile(const target_row& target, const problem_size& size, const kernel_configuration& configuration);

// Returns the same tiles as a tuning space, ordered by the same cost.
std::vector<candidate> staged_space(const target_row& target, const problem_size& size);

}  // namespace kiln::gpu
