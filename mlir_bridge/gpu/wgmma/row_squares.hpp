// The scales of the few rows of A that a consumer warpgroup applies to its sums, instead of a normalization of A before
// the product: 1 / sqrt(mean(row²) + epsilon). The warpgroup squares the rows of each block in shared memory while the
// matrix unit multiplies them. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

class row_squares {
 public:
  row_squares(code_builder& code, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile)
      : code_(code), hopper_(hopper), problem_(problem), tile_(tile) {}

  // How many sums a thread has: one for each chunk of 16 bytes of a block that it squares; none without an epsilon.
  std::int64_t count() const;
  // Adds the squares of the block in this stage.
  values add(Value stages, Value stage, Value in_group, values sums) const;
  // Multiplies the sums of a block of 64 rows by the scales, which all threads of the warpgroup exchange in `memory`
  // (block_rows floats of shared memory). Contains barriers.
  void scale(values& sums, const values& squares, Value memory, Value in_group) const;

 private:
  code_builder& code_;
  hopper_code& hopper_;
  const wgmma_problem& problem_;
  const wgmma_tile& tile_;
};

}  // namespace kiln::gpu
