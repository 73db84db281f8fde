#include "spirv/hip/hip_compiler.hpp"

#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "ir/read_file.hpp"
#include "spirv/hip/answer.hpp"
#include "spirv/hip/confined_files.hpp"
#include "spirv/hip/forked_copy.hpp"
#include "spirv/hip/operator_macros.hpp"
#include "spirv/hip/translate.hpp"

namespace kiln::spirv {
namespace {

constexpr const char* header_folder = "/kiln/device/";

// Standard headers that kernels include out of habit. The device header provides the parts of them that portable
// kernels may use.
constexpr std::array standard_headers{"cstdint",
                                      "stdint.h",
                                      "cstddef",
                                      "stddef.h",
                                      "cmath",
                                      "math.h",
                                      "climits",
                                      "limits.h",
                                      "cfloat",
                                      "float.h",
                                      "cassert",
                                      "assert.h",
                                      "cstdio",
                                      "stdio.h",
                                      "cstdlib",
                                      "stdlib.h",
                                      "cstring",
                                      "string.h",
                                      "limits",
                                      "type_traits",
                                      "utility",
                                      "algorithm",
                                      "hip/hip_vector_types.h",
                                      "hip/math_functions.h",
                                      "hip/device_functions.h"};

class source_action : public clang::EmitLLVMOnlyAction {
 public:
  source_action(llvm::LLVMContext& context, std::vector<declared_operator>& operators, std::vector<hip_kernel>& kernels)
      : EmitLLVMOnlyAction(&context), operators_(operators), kernels_(kernels) {}
  std::unique_ptr<llvm::Module> result;

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    collect_operators(compiler, operators_);
    return EmitLLVMOnlyAction::BeginSourceFileAction(compiler);
  }
  void EndSourceFileAction() override;

 private:
  std::vector<declared_operator>& operators_;
  std::vector<hip_kernel>& kernels_;
};

// Reads the maximum number of threads per workgroup from __launch_bounds__. The device header keeps it as an annotation
// {function, "kiln.launch_bounds", file, line, {threads, ...}}.
std::map<const llvm::Function*, std::uint32_t> launch_bounds(const llvm::Module& module) {
  std::map<const llvm::Function*, std::uint32_t> result;
  const llvm::GlobalVariable* annotations = module.getNamedGlobal("llvm.global.annotations");
  const auto* list = annotations ? llvm::dyn_cast<llvm::ConstantArray>(annotations->getInitializer()) : nullptr;
  if (!list) return result;
  for (const llvm::Use& entry : list->operands()) {
    const auto* row = llvm::cast<llvm::ConstantStruct>(entry.get());
    const auto* function = llvm::dyn_cast<llvm::Function>(row->getOperand(0)->stripPointerCasts());
    const auto* text = llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(1)->stripPointerCasts());
    const auto* values = llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(4)->stripPointerCasts());
    const auto* name = text ? llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer()) : nullptr;
    if (!function || !values || !name || !name->isCString() || name->getAsCString() != "kiln.launch_bounds") continue;
    if (const auto* threads =
            llvm::dyn_cast_or_null<llvm::ConstantInt>(values->getInitializer()->getAggregateElement(0u)))
      result[function] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(threads->getZExtValue(), 1, 1024));
  }
  return result;
}

std::vector<hip_kernel> kernels_of(const llvm::Module& module, const std::vector<kernel_declaration>& declarations) {
  std::vector<hip_kernel> result;
  auto bounds = launch_bounds(module);
  for (const llvm::Function& f : module) {
    auto declared = is_kernel(f)
                        ? std::ranges::find(declarations, f.getName(),
                                            [](const kernel_declaration& k) { return llvm::StringRef(k.symbol); })
                        : declarations.end();
    if (declared == declarations.end()) continue;
    hip_kernel& k = result.emplace_back();
    k.symbol = declared->symbol;
    k.name = declared->name;
    for (const declared_parameter& p : declared->parameters) k.parameters.push_back(p.kind);
    k.reads_only.resize(k.parameters.size());
    // A struct passed by value may become several LLVM parameters. Such kernels cannot be launched.
    if (f.arg_size() == k.parameters.size())
      for (const llvm::Argument& a : f.args())
        k.reads_only[a.getArgNo()] = a.getType()->isPointerTy() && a.onlyReadsMemory();
    if (auto bound = bounds.find(&f); bound != bounds.end()) k.max_threads = bound->second;
  }
  std::ranges::sort(result, {}, &hip_kernel::symbol);
  return result;
}

void source_action::EndSourceFileAction() {
  EmitLLVMOnlyAction::EndSourceFileAction();
  result = takeModule();
  if (!result) return;
  auto declarations = declared_kernels(getCompilerInstance().getASTContext());
  kernels_ = kernels_of(*result, declarations);
  // The diagnostic printer considers the file finished; reopen it for messages about its operators.
  clang::CompilerInstance& compiler = getCompilerInstance();
  compiler.getDiagnosticClient().BeginSourceFile(compiler.getLangOpts(), nullptr);
  bind_kernels(compiler, operators_, kernels_, declarations);
  compiler.getDiagnosticClient().EndSourceFile();
}

std::string demangled(const llvm::Function& f) { return "'" + llvm::demangle(f.getName().str()) + "'"; }

[[noreturn]] void refuse(const std::string& what) { throw error(error_kind::unsupported, what); }

// Refuses features that no finalizer supports, by name.
void refuse_unportable(llvm::Module& module) {
  llvm::CallGraph graph(module);
  for (auto group = llvm::scc_begin(&graph); !group.isAtEnd(); ++group)
    if (group.hasCycle())
      for (llvm::CallGraphNode* node : *group)
        if (const llvm::Function* f = node->getFunction())
          refuse("function " + demangled(*f) + " is recursive: portable kernels have no stack");
  for (const llvm::Function& f : module) {
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty())
      refuse("function " + demangled(f) +
             " is used but not defined: portable kernels have Kiln's device header and what their source defines");
    if (f.isVarArg()) refuse("function " + demangled(f) + " is variadic");
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
      if (!call) continue;
      if (auto id = call->getIntrinsicID(); id == llvm::Intrinsic::trap || id == llvm::Intrinsic::debugtrap)
        refuse("function " + demangled(f) + " stops the program: a portable kernel cannot");
      if (call->isInlineAsm())
        refuse("function " + demangled(f) + " has inline assembly: it would run on one kind of device only");
      if (!call->getCalledFunction())
        refuse("function " + demangled(f) +
               " calls through a pointer: portable kernels have no function pointers or virtual functions");
    }
  }
  for (const llvm::GlobalVariable& g : module.globals())
    if (g.getAddressSpace() == 1 && !g.isConstant() && !g.getName().starts_with("llvm."))
      refuse("variable '" + llvm::demangle(g.getName().str()) +
             "' would outlive a launch: declare it __constant__, or give the operator scratch memory");
}

// Removes Clang's lists for linking host and device code, which are not needed here.
void erase_markers(llvm::Module& module) {
  for (const char* name : {"llvm.compiler.used", "llvm.used", "llvm.global.annotations"})
    if (llvm::GlobalVariable* list = module.getNamedGlobal(name)) list->eraseFromParent();
  for (llvm::GlobalVariable& g : llvm::make_early_inc_range(module.globals())) {
    g.removeDeadConstantUsers();
    if (g.getName().starts_with("__hip_cuid_") && g.use_empty()) g.eraseFromParent();
  }
  for (llvm::GlobalVariable& g : module.globals())
    if (g.hasInitializer() && g.isConstant()) g.setExternallyInitialized(false);
  module.setSourceFileName("kernel.hip");
  module.setModuleIdentifier("kernel.hip");
  for (const char* name : {"llvm.ident", "opencl.ocl.version"})
    if (llvm::NamedMDNode* node = module.getNamedMetadata(name)) node->eraseFromParent();
}

std::string first_error(const std::string& diagnostics) {
  auto at = diagnostics.find("error: ");
  if (at == std::string::npos) at = 0;
  auto begin = diagnostics.rfind('\n', at);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return diagnostics.substr(begin, diagnostics.find('\n', at) - begin);
}

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files_with(std::string_view source, const std::string& file,
                                                           const std::string& include_root,
                                                           std::set<std::string>& opened) {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string& path, std::string_view text) {
    memory->addFile(path, 0, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size()), path));
  };
  for (auto [name, text] : device_headers()) add(header_folder + std::string(name), text);
  for (const char* name : standard_headers) add(header_folder + std::string(name), "#include <kiln_hip.h>\n");
  add(std::filesystem::absolute(file).string(), source);
  return confined_files(
      include_root.empty() ? std::filesystem::absolute(file).parent_path() : std::filesystem::path(include_root),
      std::move(memory), opened);
}

compiled_source compile_here(std::string_view source, const std::string& file, const hip_options& options) {
  initialize_back_end();
  // -Wno-pass-failed: the wave size is not known yet, so Clang would warn that `#pragma unroll` over it was not
  // applied.
  // -fno-spell-checking: Clang compares an unknown name with all known ones to suggest a similar one, in time that
  // grows with the square of their lengths. For a name of 1 MiB that takes 100 s.
  std::vector<std::string> arguments{"-triple",
                                     spirv_triple,
                                     "-aux-triple",
                                     "x86_64-unknown-linux-gnu",
                                     "-fcuda-is-device",
                                     "-emit-llvm-only",
                                     "-x",
                                     "hip",
                                     "-std=c++20",
                                     "-fdeclspec",
                                     "-nostdsysteminc",
                                     "-nobuiltininc",
                                     "-internal-isystem",
                                     header_folder,
                                     "-O2",
                                     "-ffp-contract=on",
                                     "-fbracket-depth",
                                     "256",
                                     "-ferror-limit",
                                     "20",
                                     "-fno-spell-checking",
                                     "-Wno-pass-failed"};
  for (const std::string& d : options.definitions) arguments.push_back("-D" + d);
  arguments.push_back(file);
  std::vector<const char*> pointers;
  for (const std::string& a : arguments) pointers.push_back(a.c_str());

  std::string text;
  llvm::raw_string_ostream out(text);
  std::set<std::string> opened;
  auto files = files_with(source, file, options.include_root, opened);
  clang::DiagnosticOptions diagnostic_options;
  auto early = clang::CompilerInstance::createDiagnostics(*files, diagnostic_options,
                                                          new clang::TextDiagnosticPrinter(out, diagnostic_options));
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, pointers, *early))
    throw error(error_kind::internal, "Clang rejects its options: " + text);
  std::vector<declared_operator> operators;
  compiled_source result;
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  source_action action(context, operators, result.kernels);
  clang::CompilerInstance compiler(invocation);
  compiler.setVirtualFileSystem(files);
  compiler.createDiagnostics(new clang::TextDiagnosticPrinter(out, invocation->getDiagnosticOpts()));
  compiler.setVerboseOutputStream(out);
  bool ok = compiler.ExecuteAction(action) && !compiler.getDiagnostics().hasErrorOccurred() && action.result;
  if (!ok) throw source_error(text.empty() ? file + ": cannot be compiled" : first_error(text), text);
  result.warnings = text;
  result.included.assign(opened.begin(), opened.end());
  llvm::Module& module = *action.result;
  try {
    erase_markers(module);
    refuse_unportable(module);
    if (options.whole_module) result.words = translate(module, nullptr);
    for (declared_operator& o : operators) {
      std::vector<std::string> symbols;
      for (const kernel_launch& l : o.result.launches) symbols.push_back(l.symbol);
      o.result.words = translate(module, &symbols);
      result.operators.push_back(std::move(o.result));
    }
  } catch (const error& e) {
    throw error(e.kind(), file + ": " + e.what());
  }
  return result;
}

}  // namespace

compiled_source compile_hip(std::string_view source, const std::string& file, const hip_options& options) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  return unpack_answer(in_forked_copy(
      file + ": Clang", [&] { return pack_answer([&] { return compile_here(source, file, options); }); }));
}

compiled_source compile_hip_file(const std::string& file, const hip_options& options) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none))
    throw error(error_kind::missing_file, "'" + file + "' is a folder, not a HIP source");
  constexpr std::size_t most_bytes = std::size_t{16} << 20;
  return compile_hip(read_file(file, most_bytes), file, options);
}

}  // namespace kiln::spirv
