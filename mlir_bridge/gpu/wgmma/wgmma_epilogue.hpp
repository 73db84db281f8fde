// From a consumer warp's sums to the outputs of the fusion: the epilogue in registers, two columns at a time, then
// through shared memory so that stores are 16 bytes wide; or straight to memory where rows are not whole. Internal to
// mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

// Shared memory of one warp; 0 where stores go straight to memory.
std::int64_t epilogue_bytes(const kernel_emitter& e, const wgmma_problem& problem);

// Where the warp's 16 rows of the first block of 64 begin; i32 numbers.
struct wgmma_place {
  Value batch, row, column;  // of the result
  Value lane;
  Value shared;  // ptr addrspace(3) to epilogue_bytes
};

void emit_wgmma_epilogue(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                         const wgmma_place& place, const values& sums);

}  // namespace kiln::gpu
