// The inner product of a workgroup's tile: from chunks in shared memory to sums in registers, and back through shared
// memory as rows. One implementation for matrix instructions and one for the vector unit. Internal to mlir_bridge/gpu.
#pragma once

#include <memory>

#include "mlir_bridge/gpu/contraction/tile_shape.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// The sums leave registers in `count` slabs, one after the other: matrices in shared memory that `members` threads
// write and read together.
struct slab_geometry {
  std::int64_t count = 1, rows = 0, columns = 0;  // slabs follow each other along m
  std::int64_t members = 0;
  Value member;                   // this thread's number among them
  std::int64_t owners = 1;        // how many slabs there are at a time
  Value owner;                    // which of them is ours
  Value first_row, first_column;  // of slab 0 in the workgroup's tile
  std::int64_t pitch() const {
    return columns + 4;
  }  // elements; rows begin in different banks, and at multiples of 16 bytes
  std::int64_t elements() const { return owners * rows * pitch(); }
};

class multiplier {
 public:
  virtual ~multiplier() = default;
  virtual values zeros() = 0;
  // sums + A * B for one step; `a` and `b` point to the tiles in shared memory.
  virtual values multiply(Value a, Value b, values sums) = 0;
  const slab_geometry& slabs() const { return slabs_; }
  // Writes slab i of the sums; `memory` is ours.
  virtual void write_slab(std::int64_t i, const values& sums, Value memory) = 0;
  // Orders what a slab's members wrote and read.
  virtual void synchronize() = 0;

 protected:
  // The most of `parts` equal parts, of so many elements each, that slabs of `bytes` hold.
  static std::int64_t parts_of_slab(std::int64_t parts, std::int64_t elements, std::int64_t element_bytes,
                                    std::int64_t bytes) {
    for (std::int64_t some = parts; some > 1; --some)
      if (parts % some == 0 && some * elements * element_bytes <= bytes) return some;
    return 1;
  }
  slab_geometry slabs_;
};

// Slabs take about `slab_bytes` of shared memory, or as little as they can.
std::unique_ptr<multiplier> make_matrix_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes);
std::unique_ptr<multiplier> make_vector_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes);

// The vector unit's sum of four-byte pieces: adds the products of two chunks.
class chunk_product {
 public:
  chunk_product(kernel_emitter& e, const product_types& types);
  // A chunk as what is multiplied: its elements, or its words.
  values split(Value chunk) const;
  Value add_product(Value a, Value b, Value sum) const;

 private:
  enum class kind { multiply_add, dot_f16, dot_i8, dot_i8_mixed };
  code_builder& code_;
  product_types types_;
  kind kind_;
};

}  // namespace kiln::gpu
