// The two products of a block of keys and values in shared memory: scores, queries * keys, and the block's share of the
// result, weights * values. f32 numbers are multiplied as sums of bf16 parts (gpu/split_f32.hpp). Internal to
// mlir_bridge/gpu.
#pragma once

#include <deque>
#include <functional>

#include "mlir_bridge/kinds/attention/gpu/matrix_queries.hpp"

namespace kiln::gpu {

class block_products {
 public:
  // All but the shape must outlive it.
  block_products(kernel_emitter& e, element_type type, const lane_layout& lanes, const matrix_instruction& unit,
                 key_value_blocks& blocks, const matrix_attention_shape& shape);

  std::int64_t depth_groups() const { return blocks_.depth_chunks() * lane_layout::chunk / lanes_.group_keys; }
  std::int64_t key_groups() const { return key_block_ / lanes_.group_keys; }
  std::int64_t result_groups() const { return blocks_.value_depth() / lanes_.group_keys; }

  // Zeros for the sums of the result.
  values no_result() const { return product_.zeros(result_tiles()); }
  // The sums of all tiles of scores.
  values scores(matrix_queries& queries);
  // Begins to read values for add_values().
  void begin_values();
  // Adds weights * values. `weights` has, for each group of keys, one fragment for each part.
  void add_values(const std::vector<std::vector<fragment>>& weights, std::span<Value> result);

 private:
  using reader = std::function<fragment(std::int64_t group, std::int64_t tile)>;
  using user = std::function<void(std::int64_t group, std::int64_t tile, const fragment&)>;
  void for_tiles(std::int64_t groups, std::int64_t tiles, const reader& read, const user& multiply);
  void read_until(std::int64_t end, std::int64_t tiles, const reader& read);
  reader values_reader();
  std::int64_t result_tiles() const { return result_groups() * lanes_.tiles_of_group; }
  void multiply(const fragment& rows_side, const fragment& other, std::span<Value> sums);
  void multiply(const std::vector<fragment>& rows_side, const std::vector<std::vector<fragment>>& others,
                std::span<Value> sums, std::span<Value> small);
  void add_to(std::span<Value> sums, std::span<const Value> others);

  code_builder& code_;
  element_type type_;
  const lane_layout& lanes_;
  const factor_map& map_;  // of keys and values
  matrix_product product_;
  key_value_blocks& blocks_;
  target_family family_;
  // Keys of a block, tiles of f32 whose products take turns, and tiles that are read before they are multiplied.
  std::int64_t key_block_, together_, ahead_;
  // Fragments that were read and wait for their product, and how many were read of those of one call of for_tiles().
  std::deque<fragment> on_their_way_;
  std::int64_t tiles_read_ = 0;
};

}  // namespace kiln::gpu
