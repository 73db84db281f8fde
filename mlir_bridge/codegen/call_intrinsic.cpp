#include "mlir_bridge/codegen/call_intrinsic.hpp"

namespace kiln::codegen {

Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result, std::span<const Value> operands) {
  mlir::ValueRange arguments(llvm::ArrayRef<Value>(operands.data(), operands.size()));
  auto attribute = code.builder.getStringAttr(llvm::StringRef(name.data(), name.size()));
  if (result) return code.make<mlir::LLVM::CallIntrinsicOp>(result, attribute, arguments).getResult(0);
  code.make<mlir::LLVM::CallIntrinsicOp>(attribute, arguments);
  return {};
}

}  // namespace kiln::codegen
