// Few query rows against many keys: several workgroups walk a part of the keys each, and a second launch joins what they found, always in the
// same order. After Dao et al., "Flash-Decoding for long-context inference". Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/attention/attention.hpp"

namespace kiln::gpu {

class split_keys {
 public:
  // Before the stage opens.
  split_keys(kernel_emitter& e, const attention_problem& problem, std::int64_t parts);

  // Parts that are worth it where `workgroups` do all the keys of some rows each, a block of keys at a time; 1: none. "key_parts" of the
  // configuration wins.
  static std::int64_t worthwhile(const kernel_emitter& e, const kernel_configuration& configuration, const attention_problem& problem, std::int64_t workgroups, std::int64_t key_block);

  std::int64_t parts() const { return parts_; }
  // The batch's number, the head of keys, the part and the row of that head.
  struct place {
    Value batch, key_head, part, row;
  };
  // What a part found for a row: its largest score (in units of log2), its sum of weights, and its result, not yet divided by the sum.
  void store_state(const place& at, Value top, Value sum);
  void store_result(const place& at, Value depth, std::span<const Value> elements);
  // The second launch: the results of all parts, weighted and stored through the epilogue. No stage may be open.
  void join();

 private:
  Value state_offset(const place& at);
  kernel_emitter& e_;
  const attention_problem& p_;
  std::int64_t parts_;
  buffer results_, states_;
};

}  // namespace kiln::gpu
