// Adds up the sums of the workgroups of a cluster that share a tile's k (wgmma_tile::splits). Internal to
// mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

// The memory of the stages as a pointer (addrspace 3) and as an address, the thread's number, and that of the workgroup
// in its cluster, as i32.
struct split_place {
  Value memory, address, thread, rank;
};

// Returns the sums of all workgroups of the cluster for our n / splits columns. They are exchanged in the memory of the
// stages: register i of thread t is at i * threads + t. For all consumers; contains the cluster's barrier.
values add_splits(code_builder& code, hopper_code& hopper, const wgmma_tile& tile, const values& sums,
                  const split_place& place);

// Adds up the sums of two consumer warpgroups for the same part of a tile. The first one gets the first half of the
// totals, the second one the other half. `own` and `other` (addrspace 3): a word for each sum and thread, of this
// warpgroup and of the other one. Contains barriers of both.
values exchange_halves(code_builder& code, hopper_code& hopper, const values& sums, Value warpgroup, Value in_group,
                       Value own, Value other);

}  // namespace kiln::gpu
