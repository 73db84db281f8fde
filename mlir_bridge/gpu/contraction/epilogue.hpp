// Passes a workgroup's sums to the fusion's outputs. The sums go through shared memory, so that each thread evaluates
// and stores several columns of one row at a time. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/multiplier.hpp"

namespace kiln::gpu {

struct tile_place {
  Value batch, first_m, first_n;
  // Set if no tile extends beyond the result's rows or columns.
  bool all_rows = false, all_columns = false;
};

// `memory` points to product.slabs().elements() elements of shared memory that are no longer in use. The caller must
// put a barrier in front.
void write_tile(kernel_emitter& e, const contraction_problem& problem, multiplier& product, const values& sums,
                const tile_place& place, Value memory);

// Returns true if the kernel computes a function of many instructions from each sum.
bool has_long_epilogue(const kernel_emitter& e);

// Returns how many columns one thread evaluates at a time.
std::int64_t epilogue_lanes(const kernel_emitter& e, const contraction_problem& problem, std::int64_t columns);

// Evaluates and stores sums [row, column ...) to every output. Stores only if `counts` is true (null means always);
// otherwise row and column may be beyond the result.
class result_writer {
 public:
  result_writer(kernel_emitter& e, const contraction_problem& problem) : e_(e), problem_(problem) {}
  // Evaluates the epilogue. The stores are delayed until flush(), so that the loads of many evaluations overlap.
  // `second`: the sums of the problem's second product, if there is one.
  void add(Value sums, Value batch, Value row, Value column, bool row_may_be_beyond, bool column_may_be_beyond,
           Value second = {});
  void flush();

 private:
  struct result {
    values outputs;
    position where;
    Value counts;
  };
  kernel_emitter& e_;
  const contraction_problem& problem_;
  std::vector<result> pending_;
};

}  // namespace kiln::gpu
