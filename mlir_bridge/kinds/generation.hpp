// A kernel before and after its generator: the row of the table that says which generator it is, and what the generator
// works on. Both families' tables hold the same kind of row; an anchor has one row, a cluster without an anchor has the
// row of the empty name. Internal to mlir_bridge.
#pragma once

#include <memory>
#include <string_view>

#include "mlir/IR/OwningOpRef.h"
#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::codegen {

struct generator_row {
  std::string_view operation;  // the anchor's
  void (*emit)(kernel_emitter&);
  space_function space = default_only;  // what of it a tuner may vary
  bool wide_indices = false;            // GPUs: whether the generator's indices must be 64 bits wide
};

// begin_generation (cpu/anchors.hpp, gpu/anchors.hpp) makes one; row->emit(*emitter) then generates. The target and the
// configuration must outlive it, the kernel's context too. Members are destroyed from the last to the first.
struct generation {
  std::unique_ptr<module> cluster;
  mlir::OwningOpRef<mlir::ModuleOp> code;
  const generator_row* row = nullptr;
  std::unique_ptr<kernel_emitter> emitter = nullptr;
};

}  // namespace kiln::codegen
