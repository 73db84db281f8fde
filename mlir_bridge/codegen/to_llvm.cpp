#include "mlir_bridge/codegen/to_llvm.hpp"

#include "ir/error.hpp"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln::codegen {

namespace {

using mlir::failed;

// Expands f32 functions without a hardware instruction to polynomials. Visits only these operations.
mlir::LogicalResult expand_math(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::Operation*> operations;
  module.walk([&](mlir::Operation* op) {
    if (mlir::isa<mlir::math::TanhOp, mlir::math::ErfOp>(op)) operations.push_back(op);
  });
  if (operations.empty()) return mlir::success();
  mlir::RewritePatternSet patterns(module.getContext());
  mlir::populateMathPolynomialApproximationPatterns(
      patterns, [](llvm::StringRef name) { return name == "math.tanh" || name == "math.erf"; });
  return mlir::applyOpPatternsGreedily(
      operations, std::move(patterns),
      mlir::GreedyRewriteConfig().setStrictness(mlir::GreedyRewriteStrictness::ExistingAndNewOps));
}

mlir::LogicalResult to_control_flow(mlir::ModuleOp module) {
  mlir::RewritePatternSet patterns(module.getContext());
  mlir::populateSCFToControlFlowConversionPatterns(patterns);
  mlir::ConversionTarget target(*module.getContext());
  target.addIllegalDialect<mlir::scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](mlir::Operation*) { return true; });
  return mlir::applyPartialConversion(module, target, std::move(patterns));
}

mlir::LogicalResult to_llvm_dialect(mlir::ModuleOp module) {
  mlir::MLIRContext* context = module.getContext();
  mlir::LowerToLLVMOptions options(context);
  mlir::LLVMTypeConverter types(context, options);
  mlir::RewritePatternSet patterns(context);
  mlir::vector::populateVectorBroadcastLoweringPatterns(patterns);
  mlir::vector::populateVectorRankReducingFMAPattern(patterns);
  mlir::vector::populateVectorOuterProductLoweringPatterns(patterns);
  mlir::populateVectorToLLVMConversionPatterns(types, patterns, /*reassociateFPReductions=*/true);
  mlir::populateMathToLLVMConversionPatterns(types, patterns);
  mlir::arith::populateArithToLLVMConversionPatterns(types, patterns);
  mlir::cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  mlir::populateFuncToLLVMConversionPatterns(types, patterns);
  mlir::LLVMConversionTarget target(*context);
  target.addLegalOp<mlir::ModuleOp>();
  return mlir::applyFullConversion(module, target, std::move(patterns));
}

// Allows contraction to fma and ignoring the sign of zero everywhere. Reassociation is only allowed where a generator
// requested it (horizontal reductions), because it would undo the two-step range reductions of exp and log. Reciprocals
// are only allowed for constants, because an estimated 1/sqrt(inf) is NaN. What a generator marked with
// rounded_operations stays as it is.
void set_math_flags(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block) {
        if (!llvm::isa<llvm::FPMathOperator>(instruction)) continue;
        llvm::FastMathFlags flags = instruction.getFastMathFlags();
        if (flags.noSignedZeros()) continue;
        flags.setAllowContract(true);
        flags.setNoSignedZeros(true);
        if (instruction.getOpcode() == llvm::Instruction::FDiv && llvm::isa<llvm::Constant>(instruction.getOperand(1)))
          flags.setAllowReciprocal(true);
        instruction.setFastMathFlags(flags);
      }
}

}  // namespace

std::unique_ptr<llvm::Module> to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context) {
  diagnostic_capture diagnostics;
  auto check = [&](bool bad, const char* step) {
    if (bad)
      throw error(error_kind::compile_failed,
                  std::string("MLIR could not lower a kernel (") + step + "): " + diagnostics.text());
  };
  check(failed(expand_math(module)), "math");
  check(failed(to_control_flow(module)), "control flow");
  check(failed(to_llvm_dialect(module)), "LLVM dialect");
  auto result = mlir::translateModuleToLLVMIR(module, context);
  check(!result, "LLVM IR");
  set_math_flags(*result);
  return result;
}

}  // namespace kiln::codegen
