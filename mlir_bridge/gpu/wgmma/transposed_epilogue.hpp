// The end of a transposed product (wgmma_tile::transposed): a consumer warpgroup has the sums of 64 columns of the
// result in the rows of its matrix instructions. They go through shared memory, to the workgroup of the cluster that
// completes these columns, and there each thread adds up, scales, evaluates and stores several columns of one row.
// Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

class transposed_epilogue {
 public:
  // `rank` is the workgroup's number in its cluster, and `memory` (addrspace 3) has exchange_bytes().
  transposed_epilogue(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                      Value rank, Value memory)
      : e_(e), code_(e.code), hopper_(hopper), problem_(problem), tile_(tile), rank_(rank), memory_(memory) {}

  // Asks for the tensors of the result's form that the epilogue reads, such as a residual. Preceding kernels must have
  // ended. `column` is the first of the tile.
  void prefetch(Value column, Value in_group) const;
  // `squares`: a thread's sums of squares of the rows (row_squares.hpp), or none. Contains barriers of the warpgroup,
  // and with splits the cluster's second one.
  void write(const values& sums, const values& squares, Value column, Value in_group) const;

 private:
  std::int64_t part() const { return exchanged_columns(tile_, problem_.products()); }
  std::int64_t pitch() const { return exchange_pitch(part()); }
  void send_sums(const values& sums, Value in_group) const;
  void send_squares(const values& squares, Value in_group) const;
  Value scale_of(Value row) const;
  Value total(std::int64_t product, Value row, Value column, std::int64_t lanes) const;
  std::int64_t lanes() const;
  kernel_emitter& e_;
  code_builder& code_;
  hopper_code& hopper_;
  const wgmma_problem& problem_;
  const wgmma_tile& tile_;
  Value rank_, memory_;
};

}  // namespace kiln::gpu
