// attention on sm_90a: one warpgroup, or a thread of the last one, copies keys and values to a ring in shared memory,
// the others each have 64 rows of queries of one head; scores, weights and results stay in registers. After Shah et
// al., "FlashAttention-3": while a block's scores are multiplied, the block before it still meets its values. Internal
// to mlir_bridge/gpu.
#pragma once

#include <array>

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"

namespace kiln::gpu {

// How a workgroup divides the work. Plain data.
struct wgmma_attention_tile {
  std::int64_t depth = 128;    // of queries, keys and values: 64, 128 or 256
  std::int64_t consumers = 2;  // warpgroups of 64 query rows
  std::int64_t keys = 128;     // of a block, a multiple of 16
  std::int64_t stages = 2;     // blocks of keys, and of values, in shared memory
  bool turns = true;  // consumers begin their products in turn, so that one multiplies while another is at its softmax
  // A warpgroup of its own copies keys and values. Otherwise a thread of the last consumer does, which leaves more
  // registers to each thread.
  bool producer = true;
  std::int64_t key_parts = 1;  // workgroups that share the keys of some rows (split_keys.hpp); without a producer
  bool bounded = false;        // waits end with an error (for trying a kernel)
  bool limited = false;        // shared memory holds the number of keys that each row sees
  // The last `short_tiles` tiles of each head have rows for `short_consumers` consumers only, and the others of these
  // workgroups are idle: then the rows are divided more evenly among compute units.
  std::int64_t short_tiles = 0, short_consumers = 0;

  static constexpr std::int64_t group_rows = 64, group_threads = 128,
                                column_bytes = 128;  // of a warpgroup; of a row in shared memory: 64 elements
  std::int64_t rows() const { return consumers * group_rows; }
  std::int64_t short_rows() const { return short_consumers * group_rows; }
  // Tiles of all consumers for so many queries.
  std::int64_t long_tiles(std::int64_t queries) const {
    return (queries - short_tiles * short_rows() + rows() - 1) / rows();
  }
  std::int64_t tiles(std::int64_t queries) const { return long_tiles(queries) + short_tiles; }
  // Whether the tiles have exactly so many rows.
  bool covers(std::int64_t queries) const {
    return long_tiles(queries) * rows() + short_tiles * short_rows() == queries;
  }
  std::int64_t threads() const { return (consumers + (producer ? 1 : 0)) * group_threads; }
  std::int64_t columns() const { return depth / 64; }
  std::int64_t query_bytes() const { return group_rows * depth * 2; }  // of a consumer
  std::int64_t block_bytes() const { return keys * depth * 2; }
  std::int64_t limit_bytes() const { return limited ? rows() * 4 : 0; }
  std::int64_t shared_bytes() const {
    return consumers * query_bytes() + 2 * stages * block_bytes() + 8 * (1 + 4 * stages) + (key_parts > 1 ? 16 : 0) +
           limit_bytes();
  }
  // 65536 registers for all; a multiple of 8 each.
  std::int64_t producer_registers() const { return consumers == 2 ? 24 : 32; }
  std::int64_t consumer_registers() const { return consumers == 2 ? producer ? 240 : 255 : 160; }
};

// Queries, keys and values in memory, as the copy engine sees them. They may be some of the heads of a tensor.
struct wgmma_attention_operands {
  struct operand {
    buffer memory;
    head_layout layout;
    std::int64_t positions, heads;  // heads of the tensor in memory
    std::int64_t first_head = 0;    // of this operand
  };
  operand query, key, value_;
};

// False where the target, the type, the layout or the size are others: the caller does it with other instructions. The
// configuration's "wgmma" (0: never; 1: small problems too), "consumers", "keys", "stages", "turns", "producer",
// "key_parts" and "bounded" overrule the choice.
bool emit_wgmma_attention(kernel_emitter& e, const attention_problem& problem);
// Returns the configurations that a tuner may try; none where it is always false.
std::vector<candidate> wgmma_attention_space(kernel_emitter& e, const attention_problem& problem);

// The same for an open batch.
bool emit_open_wgmma_attention(kernel_emitter& e, const attention_problem& problem);

void write_wgmma_attention(kernel_emitter& e, const attention_problem& problem,
                           const wgmma_attention_operands& operands, const wgmma_attention_tile& tile);

}  // namespace kiln::gpu
