#include "mlir_bridge/back_ends/nvidia/dependent_launch.hpp"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"

namespace kiln::gpu {

void begin_as_dependent(llvm::Module& module, const target_row& target, std::span<launch> launches) {
  if (!target.gpu.dependent_launch) return;
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false);
  for (launch& l : launches) {
    llvm::Function& function = *module.getFunction(l.symbol);
    llvm::BasicBlock& entry = function.getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    // Inline assembly, because LLVM's intrinsic is declared as not accessing memory, so loads could be moved before it.
    builder.CreateCall(type, llvm::InlineAsm::get(type, "griddepcontrol.wait;", "~{memory}", /*hasSideEffects=*/true))
        ->setConvergent();
    function.setConvergent();
    l.waits = true;
  }
}

}  // namespace kiln::gpu
