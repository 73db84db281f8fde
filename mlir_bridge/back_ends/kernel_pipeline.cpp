#include "mlir_bridge/back_ends/kernel_pipeline.hpp"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "mlir_bridge/targets/function_attributes.hpp"

namespace kiln::codegen {
namespace {

constexpr int unrolling_level = 3;  // full unrolling as at -O3

void add_loops(llvm::FunctionPassManager& function, llvm::LoopPassManager loops, bool memory_ssa) {
  function.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), memory_ssa));
}

void add_combining(llvm::FunctionPassManager& function) {
  function.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  function.addPass(llvm::InstCombinePass());
}

// The call of a stage, if the function does nothing but load its arguments, call it and return.
llvm::CallInst* call_of_stage(llvm::Function& exported) {
  if (exported.isDeclaration() || exported.hasLocalLinkage() || exported.size() != 1) return nullptr;
  auto* end = llvm::dyn_cast<llvm::ReturnInst>(exported.front().getTerminator());
  auto* call = end && end != &exported.front().front() ? llvm::dyn_cast<llvm::CallInst>(end->getPrevNode()) : nullptr;
  const llvm::Function* stage = call ? call->getCalledFunction() : nullptr;
  const bool only = stage && !stage->isDeclaration() && stage->hasLocalLinkage() && stage->hasOneUse();
  return only && stage->getReturnType()->isVoidTy() ? call : nullptr;
}

// Moves the code of each stage into the exported function that calls it. An inliner would copy it, and would turn
// noalias arguments, which the code generator does not use, into metadata of every load and store. Without local
// functions the code of one launch can be told from the rest of the object (runtime/code_identity.hpp).
struct join_stages : llvm::PassInfoMixin<join_stages> {
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
    for (llvm::Function& exported : module) {
      llvm::CallInst* call = call_of_stage(exported);
      if (!call) continue;
      llvm::Function& stage = *call->getCalledFunction();
      llvm::BasicBlock &loads = exported.front(), &first = stage.front();
      for (llvm::Argument& argument : stage.args())
        argument.replaceAllUsesWith(call->getArgOperand(argument.getArgNo()));
      call->eraseFromParent();
      loads.getTerminator()->eraseFromParent();
      first.splice(first.begin(), &loads);
      exported.splice(exported.end(), &stage);
      loads.eraseFromParent();
    }
    for (llvm::Function& function : llvm::make_early_inc_range(module))
      if (function.empty() && function.hasLocalLinkage()) function.eraseFromParent();
    return llvm::PreservedAnalyses::none();
  }
};

// Unrolls short loops, except in stages that keep their loops (kernel_emitter::keep_loops). For those, even finding out
// how long each loop is would cost compile time for nothing.
class unroll_loops : public llvm::PassInfoMixin<unroll_loops> {
 public:
  unroll_loops() {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LoopFullUnrollPass(unrolling_level));
    add_loops(passes_, std::move(loops), /*memory_ssa=*/false);
  }
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    if (function.hasFnAttribute(written_loops)) return llvm::PreservedAnalyses::all();
    return passes_.run(function, analyses);
  }

 private:
  llvm::FunctionPassManager passes_;
};

}  // namespace

llvm::ModulePassManager kernel_pipeline() {
  llvm::FunctionPassManager function;
  function.addPass(llvm::SimplifyCFGPass());
  add_combining(function);
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LoopRotatePass());
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  add_loops(function, std::move(hoist), /*memory_ssa=*/true);
  function.addPass(unroll_loops());
  add_combining(function);
  llvm::LoopPassManager again;
  again.addPass(llvm::LICMPass(llvm::LICMOptions()));
  add_loops(function, std::move(again), /*memory_ssa=*/true);
  function.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager module;
  module.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(function)));
  module.addPass(join_stages());
  return module;
}

}  // namespace kiln::codegen
