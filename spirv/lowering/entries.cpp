#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "spirv/lowering/lowering.hpp"
#include "spirv/lowering/open_sizes.hpp"

namespace kiln::spirv {
namespace {

constexpr std::size_t most_instructions = 1'000'000;

// Sizes of functions after everything that they call is inlined. There is no recursion.
class inlined_sizes {
 public:
  std::size_t of(llvm::Function& function) {
    if (auto known = sizes_.find(&function); known != sizes_.end()) return known->second;
    std::size_t size = 0;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& i : block) {
        ++size;
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
            call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
          size += of(*call->getCalledFunction());
        if (size > most_instructions)
          throw error(error_kind::unsupported,
                      fmt::format("SPIR-V: function '{}' with what it calls has more than {} instructions",
                                  function.getName().str(), most_instructions));
      }
    return sizes_[&function] = size;
  }

 private:
  std::map<llvm::Function*, std::size_t> sizes_;
};

void inline_calls(llvm::Function& function) {
  std::vector<llvm::CallInst*> calls;
  auto collect = [&] {
    calls.clear();
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& i : block)
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
            call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
          calls.push_back(call);
  };
  for (collect(); !calls.empty(); collect())
    for (llvm::CallInst* call : calls) {
      llvm::InlineFunctionInfo info;
      if (auto result = llvm::InlineFunction(*call, info); !result.isSuccess())
        throw error(error_kind::unsupported,
                    std::string("SPIR-V: a call cannot be inlined: ") + result.getFailureReason());
    }
}

[[noreturn]] void refuse_number(const launch_site& launch, unsigned parameter) {
  throw error(error_kind::corrupted,
              fmt::format("kernel '{}' takes no such number as parameter {}", launch.kernel, parameter));
}

llvm::Constant* constant_of(llvm::Type* type, std::uint64_t bits, const launch_site& launch, unsigned parameter) {
  if (!type->isIntegerTy() && !type->isFloatingPointTy()) refuse_number(launch, parameter);
  llvm::APInt number = llvm::APInt(64, bits).zextOrTrunc(type->getPrimitiveSizeInBits());
  return type->isIntegerTy() ? static_cast<llvm::Constant*>(llvm::ConstantInt::get(type, number))
                             : llvm::ConstantFP::get(type, llvm::APFloat(type->getFltSemantics(), number));
}

// Where the table of sizes lies: kernel arguments have an address space of their own on AMD GPUs.
llvm::PointerType* table_pointer(llvm::Module& module, machine_kind kind) {
  return llvm::PointerType::get(module.getContext(), kind == machine_kind::amdgpu ? 4 : 0);
}

void make_entry(llvm::Module& module, const launch_site& launch, machine_kind kind) {
  llvm::Function* kernel = module.getFunction(launch.kernel);
  if (!kernel || kernel->isDeclaration() || !kernel->hasExternalLinkage())
    throw error(error_kind::corrupted, "SPIR-V: there is no kernel '" + launch.kernel + "'");
  if (kernel->arg_size() != launch.values.size())
    throw error(error_kind::corrupted, fmt::format("kernel '{}' takes {} parameters, and the launch gives {}",
                                                   launch.kernel, kernel->arg_size(), launch.values.size()));
  std::vector<llvm::Type*> parameters;
  for (llvm::Argument& a : kernel->args())
    if (launch.values[a.getArgNo()].buffer) {
      if (!a.getType()->isPointerTy())
        throw error(error_kind::corrupted,
                    fmt::format("kernel '{}' takes no pointer as parameter {}", launch.kernel, a.getArgNo()));
      parameters.push_back(a.getType());
    }
  if (launch.table) parameters.push_back(table_pointer(module, kind));
  auto* entry = llvm::Function::Create(llvm::FunctionType::get(kernel->getReturnType(), parameters, false),
                                       llvm::GlobalValue::ExternalLinkage, launch.symbol, module);
  if (entry->getName() != launch.symbol)
    throw error(error_kind::corrupted, "two functions are called '" + launch.symbol + "'");
  entry->setDoesNotThrow();
  entry->addFnAttr(llvm::Attribute::Convergent);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", entry));
  std::vector<llvm::Value*> values;
  unsigned next = 0;
  for (llvm::Argument& a : kernel->args()) {
    const launch_value& v = launch.values[a.getArgNo()];
    if (v.buffer) {
      for (auto kind : {llvm::Attribute::NoAlias, llvm::Attribute::ReadOnly})
        if (a.hasAttribute(kind)) entry->addParamAttr(next, kind);
      values.push_back(entry->getArg(next++));
    } else if (v.open) {
      if (!a.getType()->isIntegerTy()) refuse_number(launch, a.getArgNo());
      values.push_back(b.CreateZExtOrTrunc(size_at(b, entry->getArg(entry->arg_size() - 1), *v.open), a.getType()));
    } else {
      values.push_back(constant_of(a.getType(), v.bits, launch, a.getArgNo()));
    }
  }
  b.CreateCall(kernel, values);
  b.CreateRetVoid();
  inline_calls(*entry);
}

}  // namespace

void make_entries(llvm::Module& module, std::span<const launch_site> launches, machine_kind kind) {
  inlined_sizes sizes;
  for (llvm::Function& function : module) {
    sizes.of(function);
    function.removeFnAttr(llvm::Attribute::NoInline);
    // Kernels are renamed so that entries can use their names.
    if (!function.isDeclaration() && function.hasExternalLinkage()) function.addFnAttr("kiln-kernel");
  }
  std::vector<launch_site> renamed(launches.begin(), launches.end());
  for (llvm::Function& function : module)
    if (function.hasFnAttribute("kiln-kernel")) {
      std::string was = function.getName().str();
      function.setName("kiln.kernel." + was);
      for (launch_site& launch : renamed)
        if (launch.kernel == was) launch.kernel = function.getName().str();
    }
  for (const launch_site& launch : renamed) make_entry(module, launch, kind);
  std::vector<llvm::Function*> inlined;
  for (llvm::Function& function : module)
    if (!function.isDeclaration() &&
        std::ranges::find(launches, function.getName(), &launch_site::symbol) == launches.end())
      inlined.push_back(&function);
  for (llvm::Function* function : inlined) function->deleteBody();
  for (llvm::Function* function : inlined) function->eraseFromParent();
}

}  // namespace kiln::spirv
