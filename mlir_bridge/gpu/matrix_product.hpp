// One matrix instruction as code: fragments that lanes hold as chunks of 16 bytes, sums, and where sums belong. What a
// table row (matrix_instruction.hpp) means to a generator. Internal to mlir_bridge/gpu.
#pragma once

#include <span>

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// A lane's chunks of one tile of a factor: for each part its one chunk, or all chunks of the group where the map says
// whole_row.
struct fragment {
  values chunks;  // four 32-bit words each
};

class matrix_product {
 public:
  matrix_product(kernel_emitter& e, const matrix_instruction& instruction, const product_types& types);

  // A lane's sums of one tile are one vector, or so many scalars.
  std::int64_t values_per_tile() const;
  values zeros(std::int64_t tiles) const;
  // How many instructions a fragment feeds.
  std::int64_t steps_of_fragment() const;
  void add(const fragment& a, const fragment& b, std::int64_t step, std::span<Value> sums) const;
  // Writes a tile's sums to a matrix of 4-byte elements in shared memory, at row 0 and the given column.
  void write(std::span<const Value> sums, Value lane, Value memory, std::int64_t column, std::int64_t pitch) const;

 private:
  Value factor(const fragment& f, std::int64_t step) const;
  Value sum_register(std::span<const Value> sums, std::int64_t r) const;
  code_builder& code_;
  const matrix_instruction& unit_;
  product_types types_;
  bool nvidia_;
};

// Orders shared memory between the lanes of a wave.
void wave_barrier(code_builder& code, target_family family);

}  // namespace kiln::gpu
