#include "mlir_bridge/back_ends/nvidia/dependent_launch.hpp"

#include <algorithm>
#include <string>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "mlir_bridge/targets/dependent_launch_text.hpp"

namespace kiln::gpu {

namespace {

bool waits(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
  const auto* assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && std::string_view(assembly->getAsmString()) == wait_for_predecessors;
}

}  // namespace

void begin_as_dependent(llvm::Module& module, const target_row& target, std::span<launch> launches) {
  if (!target.gpu.dependent_launch) return;
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false);
  for (launch& l : launches) {
    llvm::Function& function = *module.getFunction(l.symbol);
    function.setConvergent();
    if (function.hasFnAttribute(starts_after_predecessors)) continue;
    l.waits = true;
    if (std::ranges::any_of(llvm::instructions(function), waits)) continue;
    llvm::IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    // Inline assembly, because LLVM's intrinsic is declared as not accessing memory, so loads could be moved before it.
    builder
        .CreateCall(type, llvm::InlineAsm::get(type, std::string(wait_for_predecessors), "~{memory}",
                                               /*hasSideEffects=*/true))
        ->setConvergent();
  }
}

}  // namespace kiln::gpu
