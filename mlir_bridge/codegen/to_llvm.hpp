// From what the generators built (func, scf, arith, math, vector, llvm) to LLVM IR. Internal to mlir_bridge.
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

// exp, log, tanh and erf become MLIR's polynomials; floating point operations carry the flags of our numerics.
// Functions have no target's attributes yet. Throws error{compile_failed} with MLIR's diagnostics.
std::unique_ptr<llvm::Module> to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context);

}  // namespace kiln::codegen
