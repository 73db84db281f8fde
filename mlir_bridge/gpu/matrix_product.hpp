// Generates code for one matrix instruction (a row of matrix_instruction.hpp): loads fragments as 16-byte chunks,
// multiplies, and writes sums to their rows and columns. Internal to mlir_bridge/gpu.
#pragma once

#include <span>

#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// The chunks of one tile of a factor that a lane holds: one chunk per part, or all chunks of the group if the map has
// whole_row.
struct fragment {
  values chunks;  // four 32-bit words each
};

class matrix_product {
 public:
  matrix_product(kernel_emitter& e, const matrix_instruction& instruction, const product_types& types);

  // Returns how many values hold a lane's sums of one tile: one vector, or this many scalars.
  std::int64_t values_per_tile() const;
  values zeros(std::int64_t tiles) const;
  // Returns how many instructions one fragment feeds.
  std::int64_t steps_of_fragment() const;
  void add(const fragment& a, const fragment& b, std::int64_t step, std::span<Value> sums) const;
  // Returns a fragment of A whose bytes are all -128. Its products are the same in all rows: what has to be subtracted
  // from the sums if A is stored minus 128 (is_shifted).
  fragment minus_128() const;
  // Writes a tile's sums to a matrix of 4-byte elements in shared memory, from row 0 and the given column on.
  void write(std::span<const Value> sums, Value lane, Value memory, std::int64_t column, std::int64_t pitch) const;
  // The same where the rows of the matrix are the columns of the instruction.
  void write_transposed(std::span<const Value> sums, Value lane, Value memory, std::int64_t column,
                        std::int64_t pitch) const;

 private:
  Value factor(const fragment& f, std::int64_t step) const;
  Value sum_register(std::span<const Value> sums, std::int64_t r) const;
  code_builder& code_;
  const matrix_instruction& unit_;
  product_types types_;
  bool nvidia_;
};

// Emits a barrier for shared memory between the lanes of a wave.
void wave_barrier(code_builder& code, target_family family);

}  // namespace kiln::gpu
