#include "mlir_bridge/finalize_llvm.hpp"

#include "ir/error.hpp"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir_bridge/back_ends/native_code.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/codegen/to_llvm.hpp"
#include "mlir_bridge/gpu/gpu_codegen_target.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {
namespace {

constexpr char math_prefix[] = "kiln.math.";

// Adds one function for one width, in the dialects that our generators use.
void add_function(mlir::ModuleOp library, const std::string& name, const codegen::codegen_target& on) {
  auto dot = name.rfind('.');
  std::string function = name.substr(0, dot);
  codegen::code_builder code(library.getContext(), on);
  mlir::Type type =
      name.substr(dot + 1) == "f64" ? mlir::Type(code.builder.getF64Type()) : mlir::Type(code.builder.getF32Type());
  bool binary = function == "pow" || function == "fmod";
  code.builder.setInsertionPointToEnd(library.getBody());
  auto made = code.make<mlir::func::FuncOp>(
      math_prefix + name, code.builder.getFunctionType(std::vector<mlir::Type>(binary ? 2 : 1, type), {type}));
  mlir::Block* entry = made.addEntryBlock();
  code.builder.setInsertionPointToStart(entry);
  std::vector<mlir::Value> operands(entry->args_begin(), entry->args_end());
  mlir::Value result = on.function(code, function, operands);
  code.make<mlir::func::ReturnOp>(result);
}

}  // namespace

void define_math(llvm::Module& module, std::span<const std::string> names, const target_row& target) {
  if (names.empty()) return;
  compiler_context context;
  mlir::MLIRContext& mlir_context = context.impl()->context;
  mlir::OwningOpRef<mlir::ModuleOp> library = mlir::ModuleOp::create(mlir::UnknownLoc::get(&mlir_context));
  for (const std::string& name : names) add_function(*library, name, gpu::gpu_codegen_target(target.family, 32));
  auto functions = codegen::to_llvm(*library, module.getContext());
  functions->setTargetTriple(module.getTargetTriple());
  functions->setDataLayout(module.getDataLayout());
  for (llvm::Function& function : *functions) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", target.processor);
    if (!target.features.empty()) function.addFnAttr("target-features", target.features);
    function.addFnAttr("no-trapping-math", "true");
    function.addFnAttr(llvm::Attribute::AlwaysInline);
    function.setDoesNotThrow();
  }
  if (llvm::Linker::linkModules(module, std::move(functions)))
    throw error(error_kind::compile_failed, "LLVM could not link the functions of libm into a kernel");
  for (const std::string& name : names)
    module.getFunction(math_prefix + name)->setLinkage(llvm::GlobalValue::InternalLinkage);
}

void finalize_llvm(llvm::Module& module, const target_row& target, native_kernel& kernel, finalize_trace* trace) {
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(module, &stream))
    throw error(error_kind::internal, "a kernel became invalid LLVM IR: " + problems.substr(0, problems.find('\n')));
  finalize_trace unused;
  make_native(module, target,
              target.family == target_family::cpu ? loop_optimization::vectorize : loop_optimization::unroll, kernel,
              trace ? *trace : unused);
}

}  // namespace kiln
