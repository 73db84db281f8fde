// A workgroup's queries as factors of matrix instructions: they stay in registers or, where those are too few, in
// shared memory. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"
#include "mlir_bridge/kinds/attention/gpu/matrix_shape.hpp"

namespace kiln::gpu {

class matrix_queries {
 public:
  // `map` is that of the factor that queries are. All but the shape must outlive it.
  matrix_queries(kernel_emitter& e, const attention_problem& problem, const lane_layout& lanes, const factor_map& map,
                 workgroup& group, const matrix_attention_shape& shape);

  // Reads the queries of the head and batch `at`: `groups` groups of depths of this lane's rows, one for each part.
  void read(const attention_problem::place& at, std::span<const Value> rows, Value lane_group, std::int64_t groups);
  // Those of a group of depths: one fragment for each part of the number.
  std::vector<fragment> of_group(std::int64_t g);

 private:
  // Chunks of a group of depths that a lane needs.
  std::int64_t chunks_of_lane() const { return lanes_.row_parts * (map_.whole_row ? lanes_.group_keys / chunk : 1); }
  // Chunks of a group of depths that each owner stores.
  std::int64_t stored_chunks() const { return chunks_of_lane() * (whole_ ? 2 : parts_of(type_)); }
  // Each thread reads only what it has stored itself, or what all lanes of its row have.
  std::int64_t owners() const { return map_.whole_row ? group_.waves() * lanes_.row_tile : group_.threads(); }
  // Address of a stored chunk.
  Value stored(std::int64_t number);
  Value read_chunk(const attention_problem::place& at, Value row, Value number);
  std::vector<fragment> in_parts(std::span<const Value> chunks);

  static constexpr std::int64_t chunk = lane_layout::chunk;
  kernel_emitter& e_;
  code_builder& code_;
  const attention_problem& p_;
  const lane_layout& lanes_;
  const factor_map& map_;
  workgroup& group_;
  element_type type_;
  bool stored_, whole_;
  // In registers: for each group of depths, one fragment for each part.
  std::vector<std::vector<fragment>> held_;
  Value memory_;
};

}  // namespace kiln::gpu
