// The state of one kernel while its generator runs: which generator its kind selects, and the emitter it writes to.
// Internal to mlir_bridge.
#pragma once

#include <memory>

#include "mlir/IR/OwningOpRef.h"
#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln {

// begin_generation creates it; emit() then generates the code. The target, the configuration and the kernel's context
// must outlive it. Members are destroyed from the last to the first.
struct generation {
  void emit() const;

  std::unique_ptr<module> fusion;
  mlir::OwningOpRef<mlir::ModuleOp> code;
  kernel_configuration configuration = {};  // with the kernel's origin (codegen/open_origin.hpp)
  kernel_generator generator;
  std::unique_ptr<codegen::kernel_emitter> emitter;
  std::vector<dim> bounded_sizes = {};  // see native_kernel
};

// Throws error{unsupported} if the anchor's kind has no generator for the target's family.
generation begin_generation(const portable_kernel& kernel, const target_row& target,
                            const kernel_configuration& configuration);

}  // namespace kiln
