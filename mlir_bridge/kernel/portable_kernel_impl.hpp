// What code generation sees of a compiler_context and a portable_kernel. Internal to mlir_bridge.
#pragma once

#include <span>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir_bridge/dialect/dialect.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln {

// Every dialect, external model and LLVM IR translation of mlir_bridge, in one place (context.cpp). A code generator
// that needs another adds it there.
void register_dialects(mlir::DialectRegistry& registry);

struct compiler_context::implementation {
  implementation();
  mlir::MLIRContext context;
};

struct portable_kernel::implementation {
  std::shared_ptr<compiler_context::implementation> context;  // before the module: destroyed after it
  mlir::OwningOpRef<mlir::ModuleOp> module;
  // The one kiln.kernel of the module.
  dialect::KernelOp kernel() const { return *module.get().getOps<dialect::KernelOp>().begin(); }
};

// Gives a context one handler that sends the diagnostics of each thread to that thread's innermost diagnostic_capture,
// and drops them where there is none; MLIR's own scoped handlers would mix up threads that share the context.
void route_diagnostics(mlir::MLIRContext& context);

// Collects the errors that MLIR reports on this thread while it lives.
class diagnostic_capture {
 public:
  diagnostic_capture();
  ~diagnostic_capture();
  diagnostic_capture(const diagnostic_capture&) = delete;
  diagnostic_capture& operator=(const diagnostic_capture&) = delete;
  const std::string& text() const { return text_; }  // one line per error

 private:
  friend void route_diagnostics(mlir::MLIRContext&);
  std::string text_;
  diagnostic_capture* outer_;
};

// Reads and verifies a kernel's bytecode; throws as portable_kernel::parse does. The context must have routed
// diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> read_kernel(mlir::MLIRContext& context, std::span<const std::byte> bytecode);

}  // namespace kiln
