// Passes a consumer warp's sums to the outputs of the fusion. The epilogue is evaluated in registers, two columns at a
// time. Results then go through shared memory, so that stores are 16 bytes wide, or directly to memory if rows are
// partial. Internal to mlir_bridge/gpu.
#pragma once

#include <utility>

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

// Returns the bytes of shared memory per warp; 0 if stores go directly to memory.
std::int64_t epilogue_bytes(const kernel_emitter& e, const wgmma_problem& problem);

// The start of the warp's 16 rows in the first block of 64, as i32.
struct wgmma_place {
  // Position in the result.
  Value batch, row, column;
  Value lane;
  // Pointer (addrspace 3) to epilogue_bytes of shared memory.
  Value shared;
  // The first row of the tile that is its own, if overlaps_rows().
  Value own_row;
};

// Returns true if the last tile of rows begins so early that it ends with the last row. Its first rows are also those
// of the tile before it, which stores them: copies of boxes that are partly outside of a tensor are slow.
bool overlaps_rows(const wgmma_problem& problem, const wgmma_tile& tile);

// Maps a row of the tile (i32) to a row of the result. The first value is always a valid row; the second tells whether
// the tile's row has a result at all (null: always). `own_row` is that of wgmma_place.
std::pair<Value, Value> result_row(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem,
                                   const wgmma_tile& tile, Value row, Value own_row);

// `second`: the sums of the problem's second product, if there is one.
void emit_wgmma_epilogue(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                         const wgmma_place& place, const values& sums, const values& second = {});

}  // namespace kiln::gpu
