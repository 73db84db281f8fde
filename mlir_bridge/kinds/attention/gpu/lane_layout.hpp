// Which keys and depths the lanes of a wave hold when scores never leave registers. Internal to mlir_bridge/gpu.
//
// The rows of queries are the factor whose result index is a lane's own: columns of D on AMD (scores are K Qᵀ), rows on
// NVIDIA (Q Kᵀ). A lane then holds, of `group_keys` neighbouring keys, `chunk` for each of its rows: those that lane
// group c has in its registers e, which as chunk c of the second product's factor P meet the same keys of Vᵀ if those
// are stored in the order key(c, e). The same map, used for the rows of Vᵀ, leaves each lane with 8 neighbouring depths
// of the result.
#pragma once

#include "mlir_bridge/gpu/matrix_instruction.hpp"
#include "mlir_bridge/gpu/matrix_product.hpp"

namespace kiln::gpu {

struct lane_layout {
  lane_layout(const matrix_instruction& unit, target_family family, int wave);

  static constexpr std::int64_t chunk = 8;  // elements of 16 bits
  bool rows_are_a;                          // NVIDIA
  std::int64_t row_tile = 16;               // rows of a wave's tile
  std::int64_t row_parts;                   // rows of one lane
  std::int64_t part_rows;                   // distance between them
  std::int64_t key_tile;                    // keys (or depths of the result) of one instruction
  std::int64_t lane_groups;                 // that share a row
  std::int64_t group_keys;                  // lane_groups * chunk
  std::int64_t tiles_of_group;              // group_keys / key_tile
  bool whole_row;                           // P must be in every lane group (gfx11)

  // The key, of a group's, that register e of lane group c has; and the difference that one more lane group makes.
  std::int64_t key(std::int64_t c, std::int64_t e) const {
    return keys_[static_cast<std::size_t>(e)] + c * key_of_lane_group;
  }
  std::int64_t key_of_lane_group;
  // How many e from 0 on, and from each multiple of it, are neighbouring keys.
  std::int64_t run() const;

  // Lane → row in the tile (part 0), and lane group.
  Value row_of_lane(code_builder& code, Value lane) const;
  Value lane_group(code_builder& code, Value lane) const;
  // Lanes to combine for a row: shuffle masks.
  std::vector<std::int64_t> row_masks() const;

  // Element e of group g of part p out of the sums of all tiles (matrix_product::values_per_tile for each).
  Value element(code_builder& code, std::span<const Value> sums, std::int64_t part, std::int64_t group,
                std::int64_t e) const;
  // All sums, each lane's elements multiplied by a factor of its row part.
  void scale(code_builder& code, values& sums, std::span<const Value> of_part) const;

 private:
  std::array<std::int64_t, 8> keys_;
  std::int64_t registers_, lanes_of_group_;
  bool nvidia_;
};

}  // namespace kiln::gpu
