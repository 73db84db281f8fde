// How a workgroup divides a contraction: its tile, the parts of its waves or threads, and the depth of its pipeline.
// Plain data and the choice of it from a target's row, by budgets and a cost in cycles. Internal to mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"

namespace kiln::gpu {

struct tile_shape {
  const matrix_instruction* instruction = nullptr;  // null: multiply-add (or dot products) of the vector unit
  std::int64_t m = 64, n = 64;                      // of the workgroup
  std::int64_t part_m = 32, part_n = 32;            // of a wave; of a thread without matrix instruction
  std::int64_t chunks = 8;                          // of a row: the step along k is so many times 16 bytes
  std::int64_t stages = 2;                          // tiles of a step in shared memory
  bool async = false;                               // copied into shared memory without registers
  std::int64_t splits = 1;                          // workgroups that share a tile's depth

  std::int64_t parts() const { return (m / part_m) * (n / part_n); }
  std::int64_t threads(const gpu_row& row) const { return instruction ? parts() * row.wave : parts(); }
  std::int64_t stage_bytes() const { return (m + n) * chunks * 16; }
};

// What of a problem decides.
struct problem_size {
  std::int64_t batch, m, n, k;
  product_types types;
  std::int64_t a_piece = 16, b_piece = 16;  // consecutive k that are loaded at once
  bool plain = false;                       // both operands can be copied as they are in memory
  bool open = false;                        // the sizes are usual ones: no workgroups share a tile
};

// Whether the row can run it: whole fragments, threads, shared memory, registers.
bool legal(const tile_shape& tile, const target_row& target, const problem_size& size);
// All legal ones worth measuring, and the one that is expected to be fastest; the configuration's "tile_m", "tile_n",
// "part_m", "part_n", "chunks", "stages", "splits" win where the result is legal.
std::vector<tile_shape> candidates(const target_row& target, const problem_size& size);
tile_shape choose_tile(const target_row& target, const problem_size& size, const kernel_configuration& configuration);

// The tuner's form of them, by the same cost.
std::vector<candidate> staged_space(const target_row& target, const problem_size& size);

}  // namespace kiln::gpu
