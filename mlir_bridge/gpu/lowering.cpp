#include "mlir_bridge/gpu/lowering.hpp"

#include <string>

#include "ir/error.hpp"
#include "llvm/IR/Instructions.h"
#include "mlir_bridge/codegen/to_llvm.hpp"

namespace kiln::gpu {

namespace {

// A descriptor for the tensor copy engine is an argument by value that stays where the driver put it.
void pass_tensor_map(llvm::Function& function, unsigned argument) {
  llvm::LLVMContext& context = function.getContext();
  function.addParamAttr(argument, llvm::Attribute::getWithByValType(context, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), 128)));
  function.addParamAttr(argument, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  function.addParamAttr(argument, llvm::Attribute::get(context, "nvvm.grid_constant"));
}

// Inline assembly means something to a whole warp, or to a group of them: it is neither duplicated nor moved into branches.
void keep_converged(llvm::Function& function) {
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& instruction : block)
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm()) {
        call->setConvergent();
        function.setConvergent();
      }
}

void make_kernel(llvm::Function& function, const target_row& target, const launch& l) {
  std::string count = std::to_string(l.block);
  if (target.family == target_family::amdgpu) {
    function.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
    function.addFnAttr("amdgpu-flat-work-group-size", count + "," + count);
    function.addFnAttr("uniform-work-group-size", "true");
    // Nothing that we generate asks the driver for more than buffers and ids.
    for (const char* absent : {"amdgpu-no-dispatch-ptr", "amdgpu-no-queue-ptr", "amdgpu-no-implicitarg-ptr", "amdgpu-no-dispatch-id", "amdgpu-no-hostcall-ptr", "amdgpu-no-heap-ptr",
                               "amdgpu-no-multigrid-sync-arg", "amdgpu-no-default-queue", "amdgpu-no-completion-action", "amdgpu-no-workitem-id-y", "amdgpu-no-workitem-id-z"})
      function.addFnAttr(absent);
  } else {
    function.setCallingConv(llvm::CallingConv::PTX_Kernel);
    function.addFnAttr("nvvm.maxntid", count);
    for (const tensor_map& map : l.tensor_maps) pass_tensor_map(function, map.argument);
  }
}

}  // namespace

std::unique_ptr<llvm::Module> lower_to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context, const target_row& target, std::span<const launch> launches) {
  auto result = codegen::to_llvm(module, context);
  for (llvm::Function& function : *result) {
    function.setDoesNotThrow();
    if (function.isDeclaration()) {
      if (!function.isIntrinsic()) throw error(error_kind::unsupported, "target '" + target.name + "' has no function '" + function.getName().str() + "'");
      continue;
    }
    function.addFnAttr("target-cpu", target.processor);
    if (!target.features.empty()) function.addFnAttr("target-features", target.features);
    function.addFnAttr("no-trapping-math", "true");
    function.addFnAttr("amdgpu-unsafe-fp-atomics", "true");
  }
  for (const launch& l : launches) {
    llvm::Function& function = *result->getFunction(l.symbol);
    keep_converged(function);
    make_kernel(function, target, l);
  }
  if (target.family == target_family::amdgpu) result->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  return result;
}

}  // namespace kiln::gpu
