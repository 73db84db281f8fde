#include "mlir_bridge/back_ends/kernel_pipeline.hpp"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace kiln::codegen {
namespace {

constexpr int optimization_level = 3;

void add_loops(llvm::FunctionPassManager& function, llvm::LoopPassManager loops, bool memory_ssa) {
  function.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), memory_ssa));
}

// Runs before the inliner, so that the inliner sees the final size of the body.
llvm::FunctionPassManager clean_up() {
  llvm::FunctionPassManager function;
  function.addPass(llvm::SimplifyCFGPass());
  function.addPass(llvm::EarlyCSEPass(true));
  function.addPass(llvm::InstCombinePass());
  return function;
}

llvm::FunctionPassManager optimize_loops(bool unroll) {
  llvm::FunctionPassManager function = clean_up();
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LoopRotatePass());
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  add_loops(function, std::move(hoist), /*memory_ssa=*/true);
  llvm::LoopPassManager simplify;
  simplify.addPass(llvm::IndVarSimplifyPass());
  if (unroll) simplify.addPass(llvm::LoopFullUnrollPass(optimization_level));
  add_loops(function, std::move(simplify), /*memory_ssa=*/false);
  if (unroll) function.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(optimization_level)));
  function.addPass(llvm::EarlyCSEPass(true));
  function.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager again;
  again.addPass(llvm::LICMPass(llvm::LICMOptions()));
  add_loops(function, std::move(again), /*memory_ssa=*/true);
  function.addPass(llvm::SimplifyCFGPass());
  return function;
}

}  // namespace

llvm::ModulePassManager kernel_pipeline(bool unroll) {
  llvm::ModulePassManager module;
  module.addPass(llvm::createModuleToFunctionPassAdaptor(clean_up()));
  module.addPass(llvm::ModuleInlinerWrapperPass(llvm::getInlineParams(optimization_level, 0)));
  module.addPass(llvm::GlobalDCEPass());
  module.addPass(llvm::createModuleToFunctionPassAdaptor(optimize_loops(unroll)));
  return module;
}

}  // namespace kiln::codegen
