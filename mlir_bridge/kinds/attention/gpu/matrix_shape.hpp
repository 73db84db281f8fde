// How attention with matrix instructions (matrix_attention.cpp) divides the work: rows over workgroups and waves, keys
// in blocks. Plain data, and its choice by resource limits and measurements. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/lane_layout.hpp"

namespace kiln::gpu {

// The division of the work of a workgroup.
struct matrix_attention_shape {
  // Waves with 16 rows each.
  std::int64_t waves = 4;
  // Keys that are in shared memory at a time.
  std::int64_t keys = 64;
  std::int64_t key_parts = 1;
  // Queries are read again from shared memory for each block, because registers do not hold them.
  bool stored_queries = false;
  // Those are f32 numbers, which are split each time: reading their parts, and room for those, costs more.
  bool whole_queries = false;
  // A launch before this one splits all keys and values of f32 into parts. Blocks are then copied while others are
  // multiplied.
  bool split_first = false;
  // Tiles of scores or results whose products are mixed, because those of one tile wait for each other.
  std::int64_t together = 4;
};

// The type that matrix instructions multiply.
element_type factor_of(const kernel_emitter& e, element_type type);
// Chunks of queries, or of their parts, that a lane needs.
std::int64_t query_chunks(const attention_problem& p, const lane_layout& lanes);
// Returns nullopt if matrix instructions cannot be used. "waves", "keys", "key_parts", "stored_queries", "split_first"
// and "together" of the configuration overrule the choice.
std::optional<matrix_attention_shape> choose_matrix_shape(const kernel_emitter& e, const attention_problem& p,
                                                          const kernel_configuration& configuration);

}  // namespace kiln::gpu
