// Lowers the generators' MLIR (func, scf, arith, math, vector, llvm) to LLVM IR. Internal to mlir_bridge.
#pragma once

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace mlir {
class ModuleOp;
}

namespace kiln::codegen {

// Expands exp, log, tanh and erf to MLIR's polynomials, and sets our fast-math flags on floating-point operations.
// Functions do not have target attributes yet. Throws error{compile_failed} with MLIR's diagnostics.
std::unique_ptr<llvm::Module> to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context);

}  // namespace kiln::codegen
