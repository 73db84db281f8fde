// The stage of a matrix product by warpgroups (wgmma.hpp). Internal to mlir_bridge/gpu.
//
// Layout of shared memory: `stages` times A's and B's block of 128 bytes of k; two barriers per stage, full[] (the
// copies have arrived) and empty[] (no consumer of the cluster reads the stage any more); the epilogue memory of each
// consumer warp. The last warpgroup is the producer: one of its threads waits for empty[s], announces the bytes at
// full[s] and starts the copies. The other warpgroups are consumers: they wait for full[s], multiply, and arrive at
// empty[s] of every workgroup that copied to them. All visit the same tiles: cluster c computes tiles c, c + clusters,
// ... Consumers share a tile.
#pragma once

#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

void emit_wgmma(kernel_emitter& e, const wgmma_problem& problem, const wgmma_tile& tile);

}  // namespace kiln::gpu
