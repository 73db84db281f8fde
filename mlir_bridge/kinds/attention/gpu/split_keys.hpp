// Few query rows against many keys: several workgroups walk a part of the keys each, and the last of them to arrive
// joins what all found, always in the same order, so that results are the same in every run. If that is too much for
// one workgroup, a second launch joins it. After Dao et al., "Flash-Decoding for long-context inference". Internal to
// mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"

namespace kiln::gpu {

// What some keys gave a row: its largest score (in units of log2), its sum of weights, and some elements of its result,
// not yet divided by the sum.
struct row_part {
  Value top, sum, result;
};
// Nothing yet, for `lanes` elements.
row_part no_keys(code_builder& code, std::int64_t lanes);
// An online softmax over parts, in their order.
row_part join_parts(code_builder& code, const row_part& so_far, std::span<const row_part> parts);
// Divides and stores through the epilogue: elements from `depth` on, a multiple of their number.
void store_row(kernel_emitter& e, const attention_problem& problem, const attention_problem::place& at, Value row,
               Value depth, const row_part& all);

class split_keys {
 public:
  // Before the stage opens. Workgroups do `tile_rows` rows of a head of keys each.
  split_keys(kernel_emitter& e, const attention_problem& problem, std::int64_t parts, std::int64_t tile_rows);

  // Parts that are worth it where `workgroups` do all the keys of some rows each, a block of keys at a time; 1: none.
  // "key_parts" of the configuration wins.
  static std::int64_t worthwhile(const kernel_emitter& e, const kernel_configuration& configuration,
                                 const attention_problem& problem, std::int64_t workgroups, std::int64_t key_block);

  std::int64_t parts() const { return parts_; }
  // The batch's number, the head of keys, the part and the row of that head.
  struct place {
    Value batch, key_head, part, row;
  };
  // What a part found for a row; elements in fours.
  void store_state(const place& at, Value top, Value sum);
  void store_result(const place& at, Value depth, std::span<const Value> elements);
  // After the workgroup of `first` (the first row of tile number `tile`) stored all of its own: where it is the last of
  // the tile's parts, joins them. Contains barriers. `memory` points to 4 bytes of shared memory that nobody uses any
  // more. Emits nothing if a launch of its own does it.
  void join(workgroup& group, const place& first, Value tile, Value memory);
  // Emits that launch. To be called when the stage is closed.
  void join_apart();

 private:
  Value state_offset(const place& at);
  // Joins what the parts found for `lanes` elements of a row from `depth` on, and stores them.
  void join_row(const attention_problem::place& at, const place& first, Value row, Value depth);
  kernel_emitter& e_;
  const attention_problem& p_;
  std::int64_t parts_, tile_rows_, tiles_;
  bool apart_;
  buffer results_, states_;
  std::optional<buffer> counters_;
};

}  // namespace kiln::gpu
