#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir_bridge/dialect/version.hpp"
#include "mlir_bridge/kernel/bytecode_check.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

#include "ir/error.hpp"

namespace kiln {
namespace {

// Parts of the messages for newer files: ours (version.hpp), and that of MLIR's reader for a newer container format.
constexpr std::string_view newer_marks[] = {dialect::newer_mark, "is newer than the current version"};

error refusal(const std::string& diagnostics) {
  for (std::string_view mark : newer_marks)
    if (diagnostics.find(mark) != std::string::npos) return error(error_kind::newer_version, diagnostics);
  return error(error_kind::corrupted,
               "the kernel cannot be read: " + (diagnostics.empty() ? "malformed bytecode" : diagnostics));
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> read_kernel(mlir::MLIRContext& context, std::span<const std::byte> bytecode) {
  check_kernel_bytecode(bytecode);
  // Copy the bytes, because the reader requires alignment and a terminating zero.
  auto buffer =
      llvm::MemoryBuffer::getMemBufferCopy({reinterpret_cast<const char*>(bytecode.data()), bytecode.size()}, "kernel");
  if (!mlir::isBytecode(buffer->getMemBufferRef()))
    throw error(error_kind::corrupted, "the kernel cannot be read: its bytes are not MLIR bytecode");
  diagnostic_capture capture;
  mlir::Block block;
  // Verified below, after we know that there is nothing but kernel operations: other dialects' verifiers are not meant
  // for such input.
  if (failed(mlir::readBytecodeFile(*buffer, &block, mlir::ParserConfig(&context, /*verifyAfterParse=*/false))))
    throw refusal(capture.text());

  if (!llvm::hasSingleElement(block) || !llvm::isa<mlir::ModuleOp>(block.front()))
    throw error(error_kind::corrupted, "the kernel cannot be read: it is not one module");
  mlir::Operation* top = &block.front();
  mlir::Operation* foreign = nullptr;
  top->walk([&](mlir::Operation* op) {
    if (op != top && op->getName().getDialectNamespace() != dialect::KilnDialect::getDialectNamespace()) foreign = op;
  });
  if (foreign)
    throw error(error_kind::unsupported, "a kernel cannot hold '" + foreign->getName().getStringRef().str() + "'");
  if (failed(mlir::verify(top))) throw refusal(capture.text());
  auto& body = llvm::cast<mlir::ModuleOp>(top).getBody()->getOperations();
  if (!llvm::hasSingleElement(body) || !llvm::isa<dialect::KernelOp>(body.front()))
    throw error(error_kind::corrupted, "the kernel cannot be read: it must hold exactly one kiln.kernel");
  top->remove();
  return llvm::cast<mlir::ModuleOp>(top);
}

}  // namespace kiln
