#include "spirv/hip/translate.hpp"

#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>

#include "spirv/hip/forked_copy.hpp"
#include "spirv/hip/wide_products.hpp"

// The entry point of LLVM's SPIR-V back end, which has no header in Debian's packages.
namespace llvm {
extern "C" bool SPIRVTranslate(Module* module, std::string& object, std::string& message,
                               const std::vector<std::string>& extensions, CodeGenOptLevel level, Triple target);
}
extern "C" {
void LLVMInitializeSPIRVTargetInfo();
void LLVMInitializeSPIRVTarget();
void LLVMInitializeSPIRVTargetMC();
void LLVMInitializeSPIRVAsmPrinter();
}

namespace kiln::spirv {
namespace {

// The extensions that the back end may use. It must do without any other, or fail.
const std::vector<std::string>& extensions() {
  static const std::vector<std::string> names{
      "SPV_KHR_no_integer_wrap_decoration", "SPV_EXT_shader_atomic_float_add", "SPV_INTEL_kernel_attributes",
      "SPV_KHR_bit_instructions",           "SPV_KHR_expect_assume",           "SPV_KHR_float_controls"};
  return names;
}

// Keeps only the named kernels. Functions that return structs are inlined into their callers, because the back end
// loses arrays inside of such values.
void prepare(llvm::Module& module, const std::vector<std::string>* symbols) {
  for (llvm::Function& f : llvm::make_early_inc_range(module))
    if (symbols && is_kernel(f) && std::ranges::find(*symbols, f.getName().str()) == symbols->end())
      f.eraseFromParent();
  for (llvm::Function& f : module) {
    split_wide_products(f);
    if (f.isDeclaration() || is_kernel(f)) continue;
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
    if (!f.getReturnType()->isAggregateType()) continue;
    f.removeFnAttr(llvm::Attribute::NoInline);
    f.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  for (llvm::GlobalVariable& g : module.globals())
    if (g.hasInitializer()) g.setLinkage(llvm::GlobalValue::InternalLinkage);
  // Declared in this order because each refers to the previous ones until it is destroyed.
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager groups;
  llvm::ModuleAnalysisManager analyses;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(analyses);
  builder.registerCGSCCAnalyses(groups);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, groups, analyses);
  llvm::ModulePassManager passes;
  llvm::cantFail(
      builder.parsePassPipeline(passes, "always-inline,function(sroa,instcombine<no-verify-fixpoint>),globaldce"));
  passes.run(module, analyses);
}

}  // namespace

void initialize_back_end() {
  static const bool initialized = [] {
    LLVMInitializeSPIRVTargetInfo();
    LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC();
    LLVMInitializeSPIRVAsmPrinter();
    return true;
  }();
  (void)initialized;
}

bool is_kernel(const llvm::Function& f) {
  return f.getCallingConv() == llvm::CallingConv::SPIR_KERNEL && !f.isDeclaration();
}

std::vector<std::byte> translate(const llvm::Module& source, const std::vector<std::string>* symbols) {
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(source);
  prepare(*module, symbols);
  std::string words = in_forked_copy("LLVM's SPIR-V back end", [&] {
    std::string object, message;
    if (!llvm::SPIRVTranslate(module.get(), object, message, extensions(), llvm::CodeGenOptLevel::Default,
                              llvm::Triple(spirv_triple)))
      llvm::report_fatal_error(llvm::StringRef(message), false);
    return object;
  });
  const auto* begin = reinterpret_cast<const std::byte*>(words.data());
  return {begin, begin + words.size()};
}

}  // namespace kiln::spirv
