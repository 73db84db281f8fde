// What one consumer warpgroup of wgmma_attention does with its 64 rows: the two products, the softmax between them, the
// result. Thread l of warp w has rows 16 w + l / 4 and 8 more; of each, columns 8 t + 2 (l % 4) and the next in
// registers 4 t and 4 t + 1, and 4 t + 2 and 4 t + 3. Two such t are what a step of 16 of the second product takes from
// registers. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/kinds/attention/gpu/split_keys.hpp"
#include "mlir_bridge/kinds/attention/gpu/wgmma_attention.hpp"

namespace kiln::gpu {

// Of both rows of a thread: the largest product so far, the sum of this thread's weights.
struct softmax_state {
  std::array<Value, 2> top, sum;
};

// What sums so far are to be multiplied with; null `rescales`: always, otherwise where it is true (i1, the same for a
// warp).
struct softmax_change {
  std::array<Value, 2> factors;
  Value rescales;
};

class wgmma_rows {
 public:
  wgmma_rows(kernel_emitter& e, hopper_code& hopper, workgroup& group, const attention_problem& problem,
             const wgmma_attention_tile& tile)
      : e_(e), code_(e.code), hopper_(hopper), group_(group), p_(problem), t_(tile), type_(problem.query.type().type) {}

  softmax_state initial_state();
  values zeros();  // of the result's sums

  // Starts Q Kᵀ of a block at shared addresses, asynchronously.
  values begin_scores(Value queries, Value keys);
  // Scores may be read afterwards, while the one product that was begun after them goes on.
  values finish_scores(const values& scores);
  // Starts result + weights V, asynchronously.
  values begin_result(const values& weights, Value block, const values& result);

  // Replaces scores by weights in f32, relative to the largest score so far, or to one that is at most 2^8 times
  // smaller after the `first` block: then sums so far need no multiplication. `limits`: how many columns from the
  // thread's first one on each row sees (null: all).
  softmax_change soften(values& scores, softmax_state& state, const std::array<Value, 2>& limits, bool first);
  // One thread (number 0) arrives at a barrier once all weights are computed: the assembler would put most of them
  // behind the next wait, which they do not need.
  void arrive_after(const softmax_state& state, Value barrier, Value thread);
  void scale(values& result, const softmax_change& change);
  values pack(const values& weights);  // two of 16 bits in a register

  // The epilogue: row is the thread's first one in its head, whose number among the rows of its head of keys is
  // `row_of_group`.
  void write(const attention_problem::place& place, Value row, Value row_of_group, const values& result,
             const softmax_state& state);
  // The same where other workgroups have other parts of the keys.
  void write_part(split_keys& split, split_keys::place place, Value row, Value row_of_group, const values& result,
                  const softmax_state& state);

 private:
  // The sum of weights of all threads of a row.
  Value whole_sum(Value sum);
  void when_row_exists(Value row, const std::function<void()>& then);
  Value combined(values all, const std::function<Value(Value, Value)>& combine);
  Value pair(Value low, Value high);
  // Four words of each of four lanes, word i for lane i: afterwards those that the four have for this lane.
  void exchange(std::span<Value> words, Value lane);

  kernel_emitter& e_;
  code_builder& code_;
  hopper_code& hopper_;
  workgroup& group_;
  const attention_problem& p_;
  const wgmma_attention_tile& t_;
  element_type type_;
};

}  // namespace kiln::gpu
