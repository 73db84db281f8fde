#include "mlir_bridge/back_ends/amd/initialize.hpp"

#include <mutex>

#include "llvm/Support/TargetSelect.h"

namespace kiln::gpu {

void initialize_amd() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    // Needed for inline assembly.
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUDisassembler();
  });
}

}  // namespace kiln::gpu
