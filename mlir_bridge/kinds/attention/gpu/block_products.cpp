#include "mlir_bridge/kinds/attention/gpu/block_products.hpp"

#include <algorithm>

namespace kiln::gpu {

namespace arith = mlir::arith;

block_products::block_products(kernel_emitter& e, element_type type, const lane_layout& lanes,
                               const matrix_instruction& unit, key_value_blocks& blocks, std::int64_t key_block,
                               std::int64_t together)
    : code_(e.code),
      type_(type),
      lanes_(lanes),
      map_(lanes.rows_are_a ? unit.b : unit.a),
      product_(e, unit, {unit.factor, element_type::f32}),
      blocks_(blocks),
      key_block_(key_block),
      together_(together) {}

values block_products::scores(matrix_queries& queries) {
  const auto per_tile = static_cast<std::size_t>(product_.values_per_tile());
  const std::int64_t tile_count = key_block_ / lanes_.key_tile;
  values scores = product_.zeros(tile_count), small = type_ == element_type::f32 ? scores : values();
  for (std::int64_t g = 0; g < depth_groups(); ++g) {
    const std::vector<fragment> of_rows = queries.of_group(g);
    for (std::int64_t t = 0; t < tile_count && small.empty(); ++t)
      multiply(of_rows[0], blocks_.keys(map_, t * lanes_.key_tile, g)[0],
               std::span(scores).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
    for (std::int64_t first = 0; first < tile_count && !small.empty(); first += together_) {
      const std::int64_t count = std::min(together_, tile_count - first);
      const auto begin = static_cast<std::size_t>(first) * per_tile, size = static_cast<std::size_t>(count) * per_tile;
      std::vector<std::vector<fragment>> tiles_of;
      for (std::int64_t t = 0; t < count; ++t) tiles_of.push_back(blocks_.keys(map_, (first + t) * lanes_.key_tile, g));
      multiply(of_rows, tiles_of, std::span(scores).subspan(begin, size), std::span(small).subspan(begin, size));
    }
  }
  if (!small.empty()) add_to(scores, small);
  return scores;
}

void block_products::add_values(const std::vector<std::vector<fragment>>& weights, std::span<Value> result) {
  const auto per_tile = static_cast<std::size_t>(product_.values_per_tile());
  const std::int64_t tile_count = result_groups() * lanes_.tiles_of_group;
  if (type_ != element_type::f32) {
    for (std::int64_t g = 0; g < key_groups(); ++g)
      for (std::int64_t t = 0; t < tile_count; ++t)
        multiply(weights[static_cast<std::size_t>(g)][0], blocks_.depths(map_, t * lanes_.key_tile, g)[0],
                 result.subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
    return;
  }
  for (std::int64_t first = 0; first < tile_count; first += together_) {
    const std::int64_t count = std::min(together_, tile_count - first);
    values sums = product_.zeros(count), small = product_.zeros(count);
    for (std::int64_t g = 0; g < key_groups(); ++g) {
      std::vector<std::vector<fragment>> tiles_of;
      for (std::int64_t t = 0; t < count; ++t)
        tiles_of.push_back(blocks_.depths(map_, (first + t) * lanes_.key_tile, g));
      multiply(weights[static_cast<std::size_t>(g)], tiles_of, sums, small);
    }
    add_to(sums, small);
    add_to(result.subspan(static_cast<std::size_t>(first) * per_tile, sums.size()), sums);
  }
}

void block_products::multiply(const fragment& rows_side, const fragment& other, std::span<Value> sums) {
  for (std::int64_t step = 0; step < product_.steps_of_fragment(); ++step) {
    if (lanes_.rows_are_a) product_.add(rows_side, other, step, sums);
    else product_.add(other, rows_side, step, sums);
  }
}

// Adds the products of parts for several tiles of the other factor: those of the largest parts to `sums`, the others,
// which are small, to `small`. Products of one tile wait for each other, so the tiles take turns.
void block_products::multiply(const std::vector<fragment>& rows_side, const std::vector<std::vector<fragment>>& others,
                              std::span<Value> sums, std::span<Value> small) {
  const std::size_t per_tile = sums.size() / others.size();
  for (const part_product& pair : part_products)
    for (std::int64_t step = 0; step < product_.steps_of_fragment(); ++step)
      for (std::size_t t = 0; t < others.size(); ++t) {
        const fragment &of_rows = rows_side[static_cast<std::size_t>(pair.a)],
                       &other = others[t][static_cast<std::size_t>(pair.b)];
        const std::span<Value> to = (pair.a + pair.b == 0 ? sums : small).subspan(t * per_tile, per_tile);
        if (lanes_.rows_are_a) product_.add(of_rows, other, step, to);
        else product_.add(other, of_rows, step, to);
      }
}

void block_products::add_to(std::span<Value> sums, std::span<const Value> others) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = code_.make<arith::AddFOp>(sums[i], others[i]);
}

}  // namespace kiln::gpu
