// A workgroup's sums to the fusion's outputs: through shared memory, so that every thread evaluates and stores several
// columns of one row at once. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/multiplier.hpp"

namespace kiln::gpu {

struct tile_place {
  Value batch, first_m, first_n;
  bool all_rows = false, all_columns = false;  // no tile reaches beyond the result
};

// `memory` points to product.slabs().elements() elements of shared memory that nobody uses any more: a barrier is the
// caller's business.
void write_tile(kernel_emitter& e, const contraction_problem& problem, multiplier& product, const values& sums,
                const tile_place& place, Value memory);

// Columns that one thread evaluates at once.
std::int64_t epilogue_lanes(const kernel_emitter& e, const contraction_problem& problem, std::int64_t columns);

// Sums [row, column ...) of the given lanes to every output. Stores under `counts` (null: always); row and column may
// be beyond the result then.
class result_writer {
 public:
  result_writer(kernel_emitter& e, const contraction_problem& problem) : e_(e), problem_(problem) {}
  // Evaluates; the stores come with flush(), so that many evaluations' loads are in flight together.
  void add(Value sums, Value batch, Value row, Value column, bool row_may_be_beyond, bool column_may_be_beyond);
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
