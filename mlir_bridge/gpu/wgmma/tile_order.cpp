#include "mlir_bridge/gpu/wgmma/tile_order.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/wgmma/wgmma_epilogue.hpp"

namespace kiln::gpu {

visited_tile place_of(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                      const tile_order& order, Value number) {
  code_builder& code = e.code;
  const auto [tiles_m, tiles_n] = std::pair{order.tiles_m, order.tiles_n};
  visited_tile place;
  if (problem.open_m) {
    // Tiles of the same rows are visited together, because a number of columns is known, and one of rows is not.
    place.batch = hopper.number(0);
    place.own_row = code.mul(code.div(number, tiles_n), tile.m);
    place.row = order.last_row ? e.min(place.own_row, *order.last_row) : place.own_row;
    place.column = code.mul(code.rem(number, tiles_n), tile.n);
    return place;
  }
  place.batch = code.div(number, tiles_m * tiles_n);
  Value local = code.rem(number, tiles_m * tiles_n);
  const std::int64_t group = std::min(tile.group, tiles_m);
  Value group_number = code.div(local, group * tiles_n), inside = code.rem(local, group * tiles_n),
        first = code.mul(group_number, group);
  // The last group may have fewer rows of tiles.
  const std::int64_t left = tiles_m % group;
  Value m, n;
  if (left == 0) {
    n = code.div(inside, group);
    m = code.add(first, code.rem(inside, group));
  } else {
    Value whole = code.less(group_number, hopper.number(tiles_m / group));
    n = hopper.quotient(inside, whole, group, left);
    m = code.add(first, code.sub(inside, code.mul(n, code.select(whole, hopper.number(group), hopper.number(left)))));
  }
  place.own_row = code.mul(code.add(code.mul(m, tile.cluster_m), order.rank_m), tile.m);
  place.row = overlaps_rows(problem, tile) ? code.min(place.own_row, problem.m - tile.m) : place.own_row;
  place.column = code.mul(code.add(code.mul(n, tile.cluster_n), order.rank_n), order.columns);
  return place;
}

box_place box_of(code_builder& code, const wgmma_image& i, Value tile, Value tap) {
  const Value above = code.div(tile, i.tiles_x());
  const Value x = code.mul(code.rem(tile, i.tiles_x()), i.box_width),
              y = code.mul(code.rem(above, i.tiles_y()), i.box_height);
  return {code.div(above, i.tiles_y()),
          code.sub(code.add(x, code.mul(code.rem(tap, i.window_width), i.dilation_x)), i.pad_x),
          code.sub(code.add(y, code.mul(code.div(tap, i.window_width), i.dilation_y)), i.pad_y)};
}

}  // namespace kiln::gpu
