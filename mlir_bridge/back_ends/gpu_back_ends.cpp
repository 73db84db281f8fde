#include "mlir_bridge/back_ends/gpu_back_ends.hpp"

#include <mutex>

#include "llvm/Support/TargetSelect.h"

namespace kiln::gpu {

void initialize_back_ends() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();  // inline assembly
    LLVMInitializeAMDGPUDisassembler();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

}  // namespace kiln::gpu
