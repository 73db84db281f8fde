#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {
namespace {

// Diagnostics do not identify the compile that caused them, only the thread.
thread_local diagnostic_capture* innermost = nullptr;

}  // namespace

void register_dialects(mlir::DialectRegistry& registry) {
  registry
      .insert<dialect::KilnDialect, mlir::affine::AffineDialect, mlir::arith::ArithDialect,
              mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
              mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

compiler_context::implementation::implementation() {
  mlir::DialectRegistry registry;
  register_dialects(registry);
  context.appendDialectRegistry(registry);
  // Load now, because loading is not allowed while several threads use the context.
  context.loadAllAvailableDialects();
  route_diagnostics(context);
}

compiler_context::compiler_context() : impl_(std::make_shared<implementation>()) {}

void route_diagnostics(mlir::MLIRContext& context) {
  context.getDiagEngine().registerHandler([](mlir::Diagnostic& diagnostic) {
    if (!innermost || diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error) return mlir::success();
    if (!innermost->text_.empty()) innermost->text_ += '\n';
    innermost->text_ += diagnostic.str();
    return mlir::success();
  });
}

diagnostic_capture::diagnostic_capture() : outer_(innermost) { innermost = this; }
diagnostic_capture::~diagnostic_capture() { innermost = outer_; }

}  // namespace kiln
