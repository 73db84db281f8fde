// How the threads of a workgroup bring one operand's part of a step into shared memory. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class tile_loader {
 public:
  // Rows `first_row` to first_row + rows of `from`, `chunks` chunks at a time. `beyond`: the last step reaches beyond
  // the depth.
  tile_loader(kernel_emitter& e, workgroup& group, const operand& from, element_type factor, std::int64_t rows,
              std::int64_t chunks, Value batch, Value first_row, bool beyond);

  std::int64_t bytes() const { return rows_ * chunks_ * 16; }

  // Global memory → registers → shared memory.
  using fetched = std::vector<gathered_chunk>;
  fetched fetch(Value k_tile);
  void store(const fetched& chunks, Value memory);
  // Global → shared memory without registers (cp.async), which the caller commits and waits for.
  void copy(Value k_tile, Value memory);

 private:
  struct place {
    Value row, chunk, bytes;  // in the tile; bytes in shared memory
  };
  element_request request(const place& at, Value k_tile) const;

  kernel_emitter& e_;
  code_builder& code_;
  operand from_;
  element_type factor_;
  std::int64_t rows_, chunks_;
  Value batch_, first_row_;
  bool beyond_;
  std::vector<place> places_;  // of this thread
};

}  // namespace kiln::gpu
