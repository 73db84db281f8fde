// The weights R of a recurrent kernel, held by a workgroup for all time steps: in registers first, then in shared
// memory; what fits into neither is read from global memory in every step. A thread multiplies one column of Rᵀ, or one
// of `parts` parts of it. Used on NVIDIA GPUs. Internal to this folder.
#pragma once

#include <optional>

#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

struct held_plan {
  std::int64_t hidden, gates;  // R is [gates, hidden]
  element_type type;
  std::int64_t parts = 1;
  // Of each thread's words of 32 bits, which hold neighbouring elements of the hidden axis.
  std::int64_t in_registers = 0, in_shared = 0;

  std::int64_t per_word() const { return 32 / storage_bits(type); }
  std::int64_t words() const { return hidden / per_word() / parts; }
};

// Returns nothing if the generator without held weights is to be used: the target is another one, or a column does not
// consist of whole words.
std::optional<held_plan> plan_held_weights(const target_row& target, std::int64_t hidden, std::int64_t gates,
                                           element_type type);
// Number of threads of the workgroup.
std::int64_t threads_of(const held_plan& plan, std::int64_t wave);

class held_weights {
 public:
  // Emits the stage that arranges `weights` as [words of a column, gates]. No stage may be open.
  held_weights(kernel_emitter& e, const held_plan& plan, const buffer& weights, bool constant);

  // Emits the loads of everything that is held, and a barrier; returns the words in registers, which a loop over time
  // steps carries.
  values load(workgroup& group);
  // Keeps the compiler from converting the words before the loop, which would take twice the registers.
  values opaque(std::span<const Value> words);

  // sums[part * gates + column] = this thread's part of state · column, for columns from `from` up to `to`; followed by
  // a barrier. `state` and `sums` are f32 in shared memory.
  void product(workgroup& group, std::span<const Value> words, Value state, Value sums, std::int64_t from,
               std::int64_t to);
  // The sum of all parts.
  Value sum(Value sums, Value column);

 private:
  Value word_at(Value from, Value word);
  void add_word(Value word, Value state, std::int64_t first, values& totals);
  kernel_emitter& e_;
  code_builder& code_;
  held_plan plan_;
  buffer packed_;
  Value column_, part_, shared_;
};

}  // namespace kiln::gpu
