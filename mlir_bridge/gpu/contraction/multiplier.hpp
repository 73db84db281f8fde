// The inner product of a workgroup's tile: reads chunks from shared memory, keeps sums in registers, and writes the
// sums back to shared memory as rows. There is one implementation for matrix instructions and one for the vector unit.
// Internal to mlir_bridge/gpu.
#pragma once

#include <memory>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/tile_shape.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// Sums are moved out of registers in `count` slabs, one at a time. A slab is a matrix in shared memory that `members`
// threads write and read together.
struct slab_geometry {
  // Slabs follow each other along m.
  std::int64_t count = 1, rows = 0, columns = 0;
  std::int64_t members = 0;
  // Index of this thread among the members.
  Value member;
  // Number of slabs that exist at the same time.
  std::int64_t owners = 1;
  // Index of this thread's slab among them.
  Value owner;
  // Position of slab 0 in the workgroup's tile.
  Value first_row, first_column;
  std::int64_t pitch() const {
    return columns + 4;
  }  // elements; rows begin in different banks, and at multiples of 16 bytes
  std::int64_t elements() const { return owners * rows * pitch(); }
};

class multiplier {
 public:
  virtual ~multiplier() = default;
  virtual values zeros() = 0;
  // Returns sums + A * B for one step. `a` and `b` point to the tiles in shared memory.
  virtual values multiply(Value a, Value b, values sums) = 0;
  // Returns the sums of the tile after the last step. Before it there are more values if A is shifted (is_shifted).
  virtual values finished(values sums) = 0;
  const slab_geometry& slabs() const { return slabs_; }
  // Writes slab i of the sums to `memory`, this thread's slab.
  virtual void write_slab(std::int64_t i, const values& sums, Value memory) = 0;
  // Barrier between the members of a slab, for its shared memory.
  virtual void synchronize() = 0;

 protected:
  // Returns the largest number of `parts` equal parts (of `elements` elements each) that fits into slabs of the given
  // size.
  static std::int64_t parts_of_slab(std::int64_t parts, std::int64_t elements, std::int64_t element_bytes,
                                    std::int64_t bytes) {
    for (std::int64_t some = parts; some > 1; --some)
      if (parts % some == 0 && some * elements * element_bytes <= bytes) return some;
    return 1;
  }
  slab_geometry slabs_;
};

// Slabs take about `slab_bytes` of shared memory, or the smallest possible size above that.
std::unique_ptr<multiplier> make_matrix_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes);
std::unique_ptr<multiplier> make_vector_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes);

// Product of 4-byte pieces on the vector unit: adds the products of two chunks to a sum.
class chunk_product {
 public:
  chunk_product(kernel_emitter& e, const product_types& types);
  // Splits a chunk into the operands of the multiplication: its elements, or its words.
  values split_a(Value chunk) const { return split(chunk, types_.unsigned_a ? element_type::u8 : types_.factor); }
  values split_b(Value chunk) const { return split(chunk, types_.factor); }
  Value add_product(Value a, Value b, Value sum) const;
  // Adds -128 times a piece of B, which is subtracted from the sums of its column in the end (is_shifted).
  Value add_shift(Value b, Value sum) const {
    return add_product(code_.integer(code_.builder.getI32Type(), all_minus_128), b, sum);
  }

 private:
  enum class kind { multiply_add, dot_f16, dot_i8, dot_i8_mixed };
  values split(Value chunk, element_type type) const;
  code_builder& code_;
  product_types types_;
  kind kind_;
};

}  // namespace kiln::gpu
