// The end of a divided or turned tile (wgmma_tile). A consumer warpgroup has the sums of 64 columns of each product in
// the rows of its matrix instructions. They go through shared memory, from where each thread evaluates and stores
// several columns of one row. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/split_sums.hpp"
#include "mlir_bridge/gpu/wgmma/tile_order.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

struct divided_place {
  visited_tile tile;
  split_place split;
  // i32: the number of the warpgroup, and the thread's in it.
  Value warpgroup, in_group;
  // Pointer (addrspace 3) to divided_exchange_bytes() for each consumer.
  Value memory;
};

// `sums`: those of a warpgroup for 64 columns and all rows of the tile, one product after the other. Consumers that
// took turns, and the workgroups that share k, add theirs up and complete a part of the rows each. Contains barriers of
// the consumers.
void end_divided_tile(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                      const divided_place& place, const values& sums);

}  // namespace kiln::gpu
