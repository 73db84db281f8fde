// Implementation types of compiler_context and portable_kernel for code generators. Internal to mlir_bridge.
#pragma once

#include <span>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir_bridge/dialect/dialect.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln {

// Registers all dialects, external models and LLVM IR translations that mlir_bridge uses. A code generator that needs
// another one adds it in context.cpp.
void register_dialects(mlir::DialectRegistry& registry);

struct compiler_context::implementation {
  implementation();
  mlir::MLIRContext context;
};

struct portable_kernel::implementation {
  // Declared before the module, so that it is destroyed after the module.
  std::shared_ptr<compiler_context::implementation> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  // Returns the only kiln.kernel of the module.
  dialect::KernelOp kernel() const { return *module.get().getOps<dialect::KernelOp>().begin(); }
};

// Installs one diagnostic handler that sends each thread's diagnostics to the innermost diagnostic_capture of that
// thread, and drops them if there is none. MLIR's scoped handlers would mix the diagnostics of threads that share a
// context.
void route_diagnostics(mlir::MLIRContext& context);

// Collects the errors that MLIR reports on this thread during the lifetime of this object.
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

// Reads and verifies a kernel's bytecode. Throws as portable_kernel::parse does. route_diagnostics must have been
// called for the context.
mlir::OwningOpRef<mlir::ModuleOp> read_kernel(mlir::MLIRContext& context, std::span<const std::byte> bytecode);

}  // namespace kiln
