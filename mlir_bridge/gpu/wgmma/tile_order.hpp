// The order in which the workgroups of a matrix product by warpgroups visit its tiles. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

struct visited_tile {
  // Position of the workgroup's tile, as i32. The first of its rows that is its own: those before it are another
  // tile's.
  Value batch, row, column, own_row;
};

struct tile_order {
  // Tiles of clusters along the rows and columns of a matrix, and columns of each product in a workgroup's tile.
  std::int64_t tiles_m, tiles_n, columns;
  // The last row that a tile begins with, if the number of rows is open and the tiles may overlap.
  std::optional<dim> last_row;
  // The workgroup's place in its cluster.
  Value rank_m, rank_n;
};

// Returns the place of the tile with this number (i32).
visited_tile place_of(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                      const tile_order& order, Value number);

// The pixel at which a tile's box begins for a position of the window (i32).
struct box_place {
  Value image, x, y;
};
box_place box_of(code_builder& code, const wgmma_image& image, Value tile, Value tap);

}  // namespace kiln::gpu
