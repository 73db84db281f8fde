#include "mlir_bridge/gpu/lowering.hpp"

#include <algorithm>
#include <string>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir_bridge/codegen/to_llvm.hpp"

namespace kiln::gpu {

namespace {

// Passes a tensor map by value; the pointer refers to the driver's copy in parameter memory.
void pass_tensor_map(llvm::Function& function, unsigned argument) {
  llvm::LLVMContext& context = function.getContext();
  function.addParamAttr(
      argument, llvm::Attribute::getWithByValType(context, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), 128)));
  function.addParamAttr(argument, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  function.addParamAttr(argument, llvm::Attribute::get(context, "nvvm.grid_constant"));
}

// Bytes of arguments that every driver accepts, in addition to some pointers.
constexpr std::size_t most_bytes_of_sizes = 3072;

// Passes the table of sizes by value; the driver copies it with the pointers.
void pass_sizes(llvm::Function& function, const target_row& target, unsigned argument, std::size_t sizes) {
  if (sizes * sizeof(std::int64_t) > most_bytes_of_sizes)
    throw error(error_kind::unsupported, "a kernel for all sizes needs " + std::to_string(sizes) +
                                             " of them, more than a GPU's kernel has arguments: bind its dimensions");
  llvm::LLVMContext& context = function.getContext();
  auto* type = llvm::ArrayType::get(llvm::Type::getInt64Ty(context), sizes);
  function.removeParamAttr(argument, llvm::Attribute::NoAlias);
  function.addParamAttr(argument, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
  if (target.family == target_family::amdgpu)
    return function.addParamAttr(argument, llvm::Attribute::getWithByRefType(context, type));
  function.addParamAttr(argument, llvm::Attribute::getWithByValType(context, type));
  function.addParamAttr(argument, llvm::Attribute::get(context, "nvvm.grid_constant"));
}

// Marks inline assembly as convergent, because it acts on whole warps or groups of them. LLVM then neither duplicates
// it nor moves it into branches.
void keep_converged(llvm::Function& function) {
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& instruction : block)
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm()) {
        call->setConvergent();
        function.setConvergent();
      }
}

// Replaces a division of f32, or of a vector of f32, by the target's approximate division.
void divide_by_lanes(llvm::BinaryOperator& division) {
  llvm::IRBuilder<> builder(&division);
  auto divide = [&](llvm::Value* a, llvm::Value* b) {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_div_approx_f, {}, {a, b});
  };
  llvm::Value *a = division.getOperand(0), *b = division.getOperand(1), *result = nullptr;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(division.getType())) {
    result = llvm::PoisonValue::get(vector);
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      result = builder.CreateInsertElement(
          result, divide(builder.CreateExtractElement(a, i), builder.CreateExtractElement(b, i)), i);
  } else {
    result = divide(a, b);
  }
  division.replaceAllUsesWith(result);
  division.eraseFromParent();
}

// If the driver compiles PTX that is to be linked, it does not analyze called functions, among them its own function
// for IEEE division. It then inserts a wait before every warpgroup instruction, which doubles a kernel's time. So
// divisions use instructions without a call, which are accurate to two units in the last place.
void divide_inline(llvm::Function& function) {
  auto is_warpgroup_product = [](const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const auto* text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
    return text && llvm::StringRef(text->getAsmString()).contains("wgmma.mma_async");
  };
  auto all = llvm::instructions(function);
  if (std::none_of(all.begin(), all.end(), is_warpgroup_product)) return;
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(all)) {
    if (!instruction.getType()->getScalarType()->isFloatTy()) continue;
    if (instruction.getOpcode() == llvm::Instruction::FDiv)
      divide_by_lanes(llvm::cast<llvm::BinaryOperator>(instruction));
    else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
             call && call->getIntrinsicID() == llvm::Intrinsic::sqrt)
      instruction.setHasApproxFunc(true);
  }
}

void make_kernel(llvm::Function& function, const target_row& target, const launch& l, std::size_t sizes) {
  for (std::size_t i = 0; i < l.arguments.size(); ++i)
    if (l.arguments[i].kind == buffer_kind::sizes) pass_sizes(function, target, static_cast<unsigned>(i), sizes);
  std::string count = std::to_string(l.block);
  if (target.family == target_family::amdgpu) {
    function.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
    function.addFnAttr("amdgpu-flat-work-group-size", count + "," + count);
    function.addFnAttr("uniform-work-group-size", "true");
    // Generated kernels need only buffers and ids from the driver; declare everything else as unused.
    for (const char* absent :
         {"amdgpu-no-dispatch-ptr", "amdgpu-no-queue-ptr", "amdgpu-no-implicitarg-ptr", "amdgpu-no-dispatch-id",
          "amdgpu-no-hostcall-ptr", "amdgpu-no-heap-ptr", "amdgpu-no-multigrid-sync-arg", "amdgpu-no-default-queue",
          "amdgpu-no-completion-action", "amdgpu-no-workitem-id-y", "amdgpu-no-workitem-id-z"})
      function.addFnAttr(absent);
  } else {
    function.setCallingConv(llvm::CallingConv::PTX_Kernel);
    function.addFnAttr("nvvm.maxntid", count);
    for (const tensor_map& map : l.tensor_maps) pass_tensor_map(function, map.argument);
  }
}

}  // namespace

std::unique_ptr<llvm::Module> lower_to_llvm(mlir::ModuleOp module, llvm::LLVMContext& context, const target_row& target,
                                            std::span<const launch> launches, std::size_t sizes) {
  auto result = codegen::to_llvm(module, context);
  for (llvm::Function& function : *result) {
    function.setDoesNotThrow();
    if (function.isDeclaration()) {
      if (!function.isIntrinsic())
        throw error(error_kind::unsupported,
                    "target '" + target.name + "' has no function '" + function.getName().str() + "'");
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
    divide_inline(function);
    make_kernel(function, target, l, sizes);
  }
  if (target.family == target_family::amdgpu)
    result->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  return result;
}

}  // namespace kiln::gpu
