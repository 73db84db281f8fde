// How products of few rows are divided among workgroups and waves (narrow.hpp). Plain data, and its choice. Internal to
// mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"

namespace kiln::gpu {

using namespace codegen;

// The work of a workgroup: all rows, `tiles` tiles of columns, and waves that take turns along k.
struct narrow_product_shape {
  // Null for the vector unit.
  const matrix_instruction* unit = nullptr;
  // Number of rows that are computed, at least that of the problem.
  std::int64_t rows = 1;
  std::int64_t columns_of_tile = 8, tiles = 1, waves = 8, unroll = 1;
  // Chunks that a wave reads from each row at a time.
  std::int64_t chunks = 4;
  // Chunks of B that one load provides; more than 1 if weights have fewer bits than the factor.
  std::int64_t together = 1;
  // Steps that are copied to shared memory in advance (cp.async); 0 means loads into registers.
  std::int64_t stages = 0;
  // Parts of the instruction's rows that the problem has. The others are zeros that nobody loads.
  std::int64_t row_parts = 1;
  // Products of the same rows (contraction_problem::second), each with its own tiles.
  std::int64_t products = 1;
  // The instruction's first factor is columns of packed weights, its second one up to eight rows, and the scales of the
  // weights multiply the sums (packed_weights.hpp).
  bool grouped = false;
  std::int64_t columns() const { return columns_of_tile * tiles; }
  std::int64_t pitch() const { return columns() * products + 4; }
  // The most rows that the problem may have.
  std::int64_t most_rows() const {
    return unit && !grouped && unit->a.part_rows > 0 ? row_parts * unit->a.part_rows : rows;
  }
  friend bool operator==(const narrow_product_shape&, const narrow_product_shape&) = default;
};

// Number of columns of the products of all batches.
std::int64_t columns_of(const contraction_problem& problem);

// `rows`: those of the problem, or a sample of an open number. `plain`: both operands may be copied to shared memory as
// they are.
narrow_product_shape choose_product_shape(const kernel_emitter& e, const kernel_configuration& configuration,
                                          const contraction_problem& problem, std::int64_t rows, bool plain);

}  // namespace kiln::gpu
