#include "mlir_bridge/cpu/lowering.hpp"

#include <algorithm>

#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir_bridge/codegen/to_llvm.hpp"
#include "mlir_bridge/cpu/contraction/factor_loads.hpp"
#include "mlir_bridge/cpu/host_codegen_target.hpp"
#include "mlir_bridge/targets/target_table.hpp"

namespace kiln::cpu {

namespace {

void set_function_attributes(llvm::Module& module, const target_row& target, std::span<const launch> launches) {
  for (llvm::Function& function : module) {
    function.setDoesNotThrow();
    if (function.isIntrinsic()) continue;
    if (function.isDeclaration()) {
      // Marks libm functions as not accessing memory (errno is not read). LLVM must not replace them by other libm
      // functions, because the loader only resolves known ones.
      if (function.getReturnType()->isFloatingPointTy()) {
        function.setDoesNotAccessMemory();
        function.setWillReturn();
        function.addFnAttr(llvm::Attribute::NoBuiltin);
      }
      continue;
    }
    function.addFnAttr("target-cpu", target.processor);
    if (!target.features.empty()) function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
    // Fixed vectors wider than 128 bits become SVE code if the length of a register is known.
    if (is_arm(target) && target.vector_bits > neon_bits) {
      const auto pieces = static_cast<unsigned>(target.vector_bits / neon_bits);
      function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(module.getContext(), pieces, pieces));
    }
    function.addFnAttr("no-trapping-math", "true");
    if (std::ranges::find(launches, function.getName(), &launch::symbol) == launches.end())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

// An x86-64 CPU before level 3 has no fused multiply-add, and libm's function takes a hundred times as long. Lets LLVM
// multiply and add instead.
void unfuse(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block)
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
            call && call->getIntrinsicID() == llvm::Intrinsic::fma)
          call->setCalledFunction(
              llvm::Intrinsic::getOrInsertDeclaration(&module, llvm::Intrinsic::fmuladd, call->getType()));
}

// Erases operations whose results nobody uses, such as indices of axes that an offset does not need. Users come after
// what they use, so one walk from the end finds all.
void erase_unused(mlir::ModuleOp module) {
  module.walk<mlir::WalkOrder::PostOrder, mlir::ReverseIterator>([](mlir::Operation* operation) {
    if (mlir::isOpTriviallyDead(operation)) operation->erase();
  });
}

}  // namespace

std::unique_ptr<llvm::Module> lower_to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context, const target_row& target,
                                            std::span<const launch> launches) {
  erase_unused(module);
  auto result = codegen::to_llvm(module, context);
  if (!has_multiply_add(target)) unfuse(*result);
  set_function_attributes(*result, target, launches);
  return result;
}

}  // namespace kiln::cpu
