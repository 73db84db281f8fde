#include "mlir_bridge/back_ends/machine_code.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "ir/error.hpp"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "mlir_bridge/back_ends/back_end.hpp"
#include "mlir_bridge/back_ends/kernel_pipeline.hpp"

namespace kiln::codegen {

namespace {

llvm::TargetMachine& machine_for(const target_row& target) {
  const back_end& end = back_end_of(target.family);
  end.initialize();
  thread_local std::map<std::tuple<std::string, std::string, std::string>, std::unique_ptr<llvm::TargetMachine>>
      machines;
  auto& machine = machines[{target.triple, target.processor, target.features}];
  if (!machine) {
    std::string message;
    llvm::Triple triple(target.triple);
    const llvm::Target* back_end = llvm::TargetRegistry::lookupTarget(triple, message);
    if (!back_end)
      throw error(error_kind::unsupported, "target '" + target.name + "': this build has no LLVM back end for " +
                                               target.triple + " (" + message + ")");
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    machine.reset(back_end->createTargetMachine(
        triple, target.processor, target.features, options, llvm::Reloc::PIC_,
        end.small_code_model ? std::optional(llvm::CodeModel::Small) : std::nullopt,
        end.aggressive ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::Default, false));
    if (!machine) throw error(error_kind::compile_failed, "LLVM has no machine for target '" + target.name + "'");
  }
  return *machine;
}

// Collects LLVM's errors about features that a target does not support (too much shared memory, a missing instruction).
// Without a handler on the context, LLVM ends the process.
class listener {
 public:
  explicit listener(llvm::LLVMContext& context) : context_(context), before_(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<handler>(problems_));
  }
  ~listener() { context_.setDiagnosticHandler(std::move(before_)); }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  // Throws error{compile_failed} with the first of LLVM's errors, if there was one.
  void check() const {
    if (!problems_.empty()) throw error(error_kind::compile_failed, "LLVM: " + problems_);
  }

 private:
  struct handler : llvm::DiagnosticHandler {
    explicit handler(std::string& problems) : problems(problems) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
      if (info.getSeverity() != llvm::DS_Error || !problems.empty()) return true;
      llvm::raw_string_ostream out(problems);
      llvm::DiagnosticPrinterRawOStream printer(out);
      info.print(printer);
      return true;
    }
    std::string& problems;
  };
  llvm::LLVMContext& context_;
  std::unique_ptr<llvm::DiagnosticHandler> before_;
  std::string problems_;
};

// Adds the passes of the code generator. LLVM has no option for a single module or target that leaves out loop strength
// reduction; its global one is read while the passes are added, so that is done by one thread at a time.
bool add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& stream, llvm::TargetMachine& machine,
                llvm::CodeGenFileType type, bool strength_reduction) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto set = [&](bool disabled) {
    llvm::cl::Option* option = llvm::cl::getRegisteredOptions().lookup("disable-lsr");
    if (!option || option->addOccurrence(0, "disable-lsr", disabled ? "true" : "false", /*MultiArg=*/true))
      throw error(error_kind::internal, "LLVM has no option 'disable-lsr'");
  };
  if (!strength_reduction) set(true);
  const bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
  if (!strength_reduction) set(false);
  return !refused;
}

std::vector<std::byte> emit(llvm::Module& module, const target_row& target, llvm::CodeGenFileType type) {
  llvm::TargetMachine& machine = machine_for(target);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (!add_passes(passes, stream, machine, type, back_end_of(target.family).strength_reduction))
    throw error(error_kind::compile_failed, "LLVM cannot emit this kind of file for its target");
  listener problems(module.getContext());
  passes.run(module);
  problems.check();
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

void run_pipeline(llvm::Module& module, const target_row& target, loop_optimization loops, bool short_pipeline) {
  llvm::PipelineTuningOptions tuning;
  if (loops != loop_optimization::vectorize) {
    tuning.LoopVectorization = false;
    tuning.SLPVectorization = false;
  }
  llvm::TargetMachine& machine = machine_for(target);
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  llvm::LoopAnalysisManager loop_analyses;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loop_analyses);
  builder.crossRegisterProxies(loop_analyses, functions, components, modules);
  listener problems(module.getContext());
  const bool of_generators = loops != loop_optimization::vectorize;
  auto passes = short_pipeline && of_generators ? kernel_pipeline()
                                                : builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  passes.run(module, modules);
  problems.check();
}

}  // namespace

void optimize(llvm::Module& module, const target_row& target, loop_optimization loops, bool short_pipeline) {
  run_pipeline(module, target, loops, short_pipeline);
  const back_end& end = back_end_of(target.family);
  if (end.after_optimization) end.after_optimization(module, target);
}

std::string emit_assembly(llvm::Module& module, const target_row& target) {
  auto text = emit(module, target, llvm::CodeGenFileType::AssemblyFile);
  return std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

std::vector<std::byte> emit_object(llvm::Module& module, const target_row& target, std::string* assembly) {
  if (assembly) *assembly = emit_assembly(*llvm::CloneModule(module), target);
  return emit(module, target, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace kiln::codegen
