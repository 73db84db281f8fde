#include "mlir_bridge/kinds/attention/gpu/block_products.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace arith = mlir::arith;

namespace {

// Of f32, whose parts are many, tiles take turns instead. Stored queries tell that registers are few.
std::int64_t tiles_ahead(target_family family, element_type type, const matrix_attention_shape& shape) {
  return family != target_family::amdgpu || type == element_type::f32 || shape.stored_queries ? 0 : 4;
}

}  // namespace

block_products::block_products(kernel_emitter& e, element_type type, const lane_layout& lanes,
                               const matrix_instruction& unit, key_value_blocks& blocks,
                               const matrix_attention_shape& shape)
    : code_(e.code),
      type_(type),
      lanes_(lanes),
      map_(lanes.rows_are_a ? unit.b : unit.a),
      product_(e, unit, {unit.factor, element_type::f32}),
      blocks_(blocks),
      family_(e.target.family),
      key_block_(shape.keys),
      together_(shape.together),
      ahead_(tiles_ahead(family_, type, shape)) {}

values block_products::scores(matrix_queries& queries) {
  const auto per_tile = static_cast<std::size_t>(product_.values_per_tile());
  const std::int64_t tile_count = key_block_ / lanes_.key_tile;
  values scores = product_.zeros(tile_count);
  if (type_ != element_type::f32) {
    std::vector<fragment> of_rows;
    for_tiles(
        depth_groups(), tile_count,
        [&](std::int64_t g, std::int64_t t) { return blocks_.keys(map_, t * lanes_.key_tile, g)[0]; },
        [&](std::int64_t g, std::int64_t t, const fragment& keys) {
          if (t == 0) of_rows = queries.of_group(g);
          multiply(of_rows[0], keys, std::span(scores).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
        });
    return scores;
  }
  values small = scores;
  for (std::int64_t g = 0; g < depth_groups(); ++g) {
    const std::vector<fragment> of_rows = queries.of_group(g);
    for (std::int64_t first = 0; first < tile_count; first += together_) {
      const std::int64_t count = std::min(together_, tile_count - first);
      const auto begin = static_cast<std::size_t>(first) * per_tile, size = static_cast<std::size_t>(count) * per_tile;
      std::vector<std::vector<fragment>> tiles_of;
      for (std::int64_t t = 0; t < count; ++t) tiles_of.push_back(blocks_.keys(map_, (first + t) * lanes_.key_tile, g));
      multiply(of_rows, tiles_of, std::span(scores).subspan(begin, size), std::span(small).subspan(begin, size));
    }
  }
  add_to(scores, small);
  return scores;
}

void block_products::add_values(const std::vector<std::vector<fragment>>& weights, std::span<Value> result) {
  const auto per_tile = static_cast<std::size_t>(product_.values_per_tile());
  const std::int64_t tile_count = result_tiles();
  if (type_ != element_type::f32) {
    for_tiles(key_groups(), tile_count, values_reader(), [&](std::int64_t g, std::int64_t t, const fragment& depths) {
      multiply(weights[static_cast<std::size_t>(g)][0], depths,
               result.subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
    });
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

// Multiplies the fragments of all tiles of all groups of what is summed. LLVM's scheduler for AMD GPUs, which saves
// registers, would read each one just before its product and wait for it, so their order is fixed: some are on their
// way while others are multiplied.
void block_products::for_tiles(std::int64_t groups, std::int64_t tiles, const reader& read, const user& multiply) {
  const std::int64_t count = groups * tiles;
  for (std::int64_t i = 0; i < count; ++i) {
    read_until(std::min(i + ahead_ + 1, count), tiles, read);
    multiply(i / tiles, i % tiles, on_their_way_.front());
    on_their_way_.pop_front();
  }
  tiles_read_ = 0;
}

void block_products::read_until(std::int64_t end, std::int64_t tiles, const reader& read) {
  for (; tiles_read_ < end; ++tiles_read_) on_their_way_.push_back(read(tiles_read_ / tiles, tiles_read_ % tiles));
  if (ahead_) schedule_barrier(code_, family_, passing::arithmetic);
}

void block_products::begin_values() {
  if (ahead_) read_until(ahead_, result_tiles(), values_reader());
}

block_products::reader block_products::values_reader() {
  return [this](std::int64_t g, std::int64_t t) { return blocks_.depths(map_, t * lanes_.key_tile, g)[0]; };
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
