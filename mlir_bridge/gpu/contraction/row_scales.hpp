// The scales of the rows of A that a product of few rows applies to its sums, instead of a normalization of A before
// it: 1 / sqrt(mean(row²) + epsilon). Where each chunk of A is in one lane of a wave (NVIDIA's matrix instructions),
// the lanes square what they multiply. Elsewhere all threads of the workgroup read the rows once more. Internal to
// mlir_bridge/gpu.
#pragma once

#include <span>

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class row_scales {
 public:
  // Rows that are read once more must consist of whole waves of 16 bytes a lane.
  static bool apply(const kernel_emitter& e, const contraction_problem& problem);
  // Allocates shared memory, which must stay. `unit` is the matrix instruction, or null.
  row_scales(kernel_emitter& e, const contraction_problem& problem, workgroup& group, const matrix_instruction* unit);

  // How many sums of squares a lane has: one for each part of the instruction's rows. 0: the rows are read once more.
  std::int64_t sums() const { return sums_; }
  // Adds the squares of a lane's chunks of A, one for each part, to sums.
  void add(std::span<const Value> chunks, std::span<Value> sums) const;

  // Issues the loads, without sums.
  void load();
  // Stores the sums of squares of each wave's parts. A barrier must follow.
  void store(std::span<const Value> sums);
  Value of(Value row) const;

 private:
  std::int64_t parts_of_row() const;
  Value add_squares(Value piece, Value sum) const;
  void store_loaded();
  kernel_emitter& e_;
  code_builder& code_;
  const contraction_problem& problem_;
  workgroup& group_;
  const matrix_instruction* unit_;
  std::int64_t sums_ = 0;
  Value memory_;
  // What each thread has loaded of the rows, eight elements at a time, and later the sum of their squares; and for each
  // of these the number of the eight among those of all rows.
  values loaded_, numbers_;
};

}  // namespace kiln::gpu
