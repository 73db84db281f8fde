// The stage of a matrix product by warpgroups (wgmma.hpp). Internal to mlir_bridge/gpu.
//
// Shared memory: `stages` times A's and B's block of 128 bytes of k; then two barriers for each stage, full[] (the
// copies have come) and empty[] (no consumer of the cluster reads it any more); then the epilogue's memory of each
// consumer warp. The last warpgroup copies: one thread waits for empty[s], announces the bytes at full[s] and starts
// the copies; the other warpgroups wait for full[s], multiply, and arrive at empty[s] of every workgroup that copied to
// them. All walk the same tiles: cluster c does tiles c, c + clusters, ... Consumers share a tile.
#pragma once

#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

void emit_wgmma(kernel_emitter& e, const wgmma_problem& problem, const wgmma_tile& tile);

}  // namespace kiln::gpu
