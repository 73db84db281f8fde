// Lowers the generators' MLIR to LLVM IR with the kernel conventions of a GPU. Internal to mlir_bridge/gpu.
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

namespace kiln::gpu {

// The functions of the launches become kernels of their number of threads. Throws error{compile_failed} with MLIR's
// diagnostics. `sizes`: how many numbers the table of sizes of an open kernel holds.
std::unique_ptr<llvm::Module> lower_to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context, const target_row& target,
                                            std::span<const launch> launches, std::size_t sizes = 0);

}  // namespace kiln::gpu
