#include "spirv/hip/translate.hpp"

#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "ir/error.hpp"

// LLVM's SPIR-V back end as a function; it has no header in Debian's packages.
namespace llvm {
extern "C" bool SPIRVTranslate(Module* module, std::string& object, std::string& message, const std::vector<std::string>& extensions, CodeGenOptLevel level, Triple target);
}
extern "C" {
void LLVMInitializeSPIRVTargetInfo();
void LLVMInitializeSPIRVTarget();
void LLVMInitializeSPIRVTargetMC();
void LLVMInitializeSPIRVAsmPrinter();
}

namespace kiln::spirv {
namespace {

constexpr std::chrono::seconds translate_limit{120};

// The back end may use these where it needs them; everything else it has to do without, or refuse.
const std::vector<std::string>& extensions() {
  static const std::vector<std::string> names{"SPV_KHR_no_integer_wrap_decoration", "SPV_EXT_shader_atomic_float_add", "SPV_INTEL_kernel_attributes", "SPV_KHR_bit_instructions", "SPV_KHR_expect_assume",
                                              "SPV_KHR_float_controls"};
  return names;
}

// Only the kernels named; functions that return structs become part of their callers, since the back end loses arrays inside of such values.
void prepare(llvm::Module& module, const std::vector<std::string>* symbols) {
  for (llvm::Function& f : llvm::make_early_inc_range(module))
    if (symbols && is_kernel(f) && std::ranges::find(*symbols, f.getName().str()) == symbols->end()) f.eraseFromParent();
  for (llvm::Function& f : module) {
    if (f.isDeclaration() || is_kernel(f)) continue;
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
    if (!f.getReturnType()->isAggregateType()) continue;
    f.removeFnAttr(llvm::Attribute::NoInline);
    f.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  for (llvm::GlobalVariable& g : module.globals())
    if (g.hasInitializer()) g.setLinkage(llvm::GlobalValue::InternalLinkage);
  llvm::LoopAnalysisManager loops;  // in this order: each refers to those before it until its end
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
  llvm::cantFail(builder.parsePassPipeline(passes, "always-inline,function(sroa,instcombine<no-verify-fixpoint>),globaldce"));
  passes.run(module, analyses);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(file, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// In the forked copy: one letter for the outcome, then the object or the back end's words. Never returns.
[[noreturn]] void translate_and_exit(llvm::Module& module, int file) {
  alarm(static_cast<unsigned>(translate_limit.count()));
  llvm::install_fatal_error_handler(
      [](void* where, const char* reason, bool) {
        write_all(*static_cast<int*>(where), std::string("E") + reason);
        _exit(0);
      },
      &file);
  std::string object, message;
  bool done = llvm::SPIRVTranslate(&module, object, message, extensions(), llvm::CodeGenOptLevel::Default, llvm::Triple(spirv_triple));
  write_all(file, done ? "S" + object : "E" + message);
  _exit(0);
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

bool is_kernel(const llvm::Function& f) { return f.getCallingConv() == llvm::CallingConv::SPIR_KERNEL && !f.isDeclaration(); }

std::vector<std::byte> translate(const llvm::Module& source, const std::vector<std::string>* symbols) {
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(source);
  prepare(*module, symbols);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw error(error_kind::io, "no pipe for the translation to SPIR-V");
  pid_t child = fork();
  if (child == 0) translate_and_exit(*module, ends[1]);
  close(ends[1]);
  std::string answer;
  char buffer[1 << 16];
  for (ssize_t got; child > 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;) answer.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  if (child < 0) throw error(error_kind::io, "no process for the translation to SPIR-V");
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || answer.empty())
    throw error(error_kind::unsupported, std::string("LLVM's SPIR-V back end ") + (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "did not come to an end" : "crashed"));
  if (answer[0] != 'S') throw error(error_kind::unsupported, "LLVM's SPIR-V back end gave up: " + answer.substr(1));
  const auto* begin = reinterpret_cast<const std::byte*>(answer.data()) + 1;
  return {begin, begin + answer.size() - 1};
}

}  // namespace kiln::spirv
