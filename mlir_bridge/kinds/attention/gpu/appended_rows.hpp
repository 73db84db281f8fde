// The keys and values of one id that a kernel of attention appends to their caches itself: every workgroup computes the
// rows of its head and puts them in the place of what it has read there, and one of them stores them. So nothing waits
// for the stores. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/cache_update/updated_cache.hpp"

namespace kiln::gpu {

class appended_rows {
 public:
  // Returns the inner anchors of the kernel as rows that attention can append; none if it has other ones, or if the
  // layouts do not fit.
  static std::optional<appended_rows> find(kernel_emitter& e, const attention_problem& problem);
  // Emits the copies of the caches and takes the inner anchors from the emitter. No stage may be open.
  void begin(kernel_emitter& e);

  // The number of the new key, -1 if it is not in the layer that attention reads, and the row of both caches (over all
  // layers, batches and heads) where it is stored. Emits loads.
  struct place {
    Value key, row;
  };
  place find_place(kernel_emitter& e, const attention_problem::place& at) const;
  // A chunk (key_value_blocks.hpp) of the new key or value.
  Value key(kernel_emitter& e, const attention_problem::place& at, Value depth) const;
  Value value_of(kernel_emitter& e, const attention_problem::place& at, Value depth) const;
  // Store these chunks to the caches.
  void store_key(kernel_emitter& e, const place& where, Value depth, Value chunk) const;
  void store_value(kernel_emitter& e, const place& where, Value depth, Value chunk) const;

 private:
  struct part {
    const instruction* update = nullptr;
    std::int64_t layer = 0;  // whose rows attention reads
    updated_cache cache;
  };
  static std::optional<part> find_part(const kernel_emitter& e, value v, const attention_problem& problem);
  Value chunk_at(kernel_emitter& e, const part& of, const attention_problem::place& at, Value depth) const;

  part keys_, values_;
};

}  // namespace kiln::gpu
