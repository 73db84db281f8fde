#include "mlir_bridge/gpu/late_start.hpp"

#include "mlir_bridge/targets/dependent_launch_text.hpp"

namespace kiln::gpu {

void start_after_predecessors(codegen::kernel_emitter& e) {
  if (!e.target.gpu.dependent_launch) return;
  const mlir::Attribute name =
      e.code.builder.getStringAttr(llvm::StringRef(starts_after_predecessors.data(), starts_after_predecessors.size()));
  e.function()->setAttr("passthrough", e.code.builder.getArrayAttr(name));
}

}  // namespace kiln::gpu
