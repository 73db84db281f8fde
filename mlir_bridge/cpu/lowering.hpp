// Lowers the generators' MLIR (func, scf, arith, math, vector, llvm) to LLVM IR. Internal to mlir_bridge/cpu.
#pragma once

#include <memory>
#include <span>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace mlir {
class ModuleOp;
}

namespace kiln::cpu {

// codegen::to_llvm for a CPU. Functions other than those of the launches become internal, and all functions get the
// target's attributes. Throws error{compile_failed} with MLIR's diagnostics.
std::unique_ptr<llvm::Module> lower_to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context, const target_row& target,
                                            std::span<const launch> launches);

}  // namespace kiln::cpu
