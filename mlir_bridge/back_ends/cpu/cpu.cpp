// The back end for x86-64 and 64-bit Arm: relocatable ELF objects, which the runtime loads (runtime/object_loader.hpp).
#include <mutex>

#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir_bridge/back_ends/back_end.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"

namespace kiln {
namespace {

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

void emit(llvm::Module& module, const target_row& target, native_kernel& kernel, std::string* assembly) {
  kernel.object = codegen::emit_object(module, target, assembly);
}

}  // namespace

const back_end cpu_back_end{.initialize = initialize,
                            .small_code_model = true,
                            .short_pipeline = true,
                            .strength_reduction = false,
                            .emit = emit};

}  // namespace kiln
