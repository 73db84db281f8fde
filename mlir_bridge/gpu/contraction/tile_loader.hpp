// Loads one operand's part of a step into shared memory with all threads of a workgroup. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class tile_loader {
 public:
  // Loads rows [first_row, first_row + rows) of `from`, `chunks` chunks per step. `beyond` is true if the last step may
  // exceed the depth. If `shift`, bytes are stored minus 128 (is_shifted).
  tile_loader(kernel_emitter& e, workgroup& group, const operand& from, element_type factor, std::int64_t rows,
              std::int64_t chunks, Value batch, Value first_row, bool beyond, bool shift = false);

  std::int64_t bytes() const { return rows_ * chunks_ * 16; }

  // Global memory → registers → shared memory.
  using fetched = std::vector<gathered_chunk>;
  fetched fetch(Value k_tile);
  void store(const fetched& chunks, Value memory);
  // Copies from global to shared memory without registers (cp.async). The caller commits the copies and waits for them.
  void copy(Value k_tile, Value memory);

 private:
  struct place {
    // Row and chunk in the tile; bytes is the offset in shared memory.
    Value row, chunk, bytes;
  };
  element_request request(const place& at, Value k_tile) const;

  kernel_emitter& e_;
  code_builder& code_;
  operand from_;
  element_type factor_;
  std::int64_t rows_, chunks_;
  Value batch_, first_row_;
  bool beyond_, shift_;
  // The chunks that this thread copies.
  std::vector<place> places_;
};

}  // namespace kiln::gpu
