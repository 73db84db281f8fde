#include "mlir_bridge/dialect/dialect.hpp"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir_bridge/dialect/version.hpp"

#include "ir/dim.hpp"
#include "ir/error.hpp"

#include "mlir_bridge/dialect/dialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "mlir_bridge/dialect/attrdef.cpp.inc"
#define GET_OP_CLASSES
#include "mlir_bridge/dialect/op.cpp.inc"

namespace kiln::dialect {

void KilnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "mlir_bridge/dialect/attrdef.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "mlir_bridge/dialect/op.cpp.inc"
      >();
  add_bytecode_interface(*this);
}

mlir::LogicalResult DimsAttr::verifyEncoding(llvm::ArrayRef<std::int64_t> dims, mlir::Type,
                                             llvm::function_ref<mlir::InFlightDiagnostic()> emit_error) const {
  if (getDims().size() != dims.size())
    return emit_error() << "#kiln.dims has " << getDims().size() << " entries for a tensor of rank " << dims.size();
  bool symbolic = false;
  for (auto [text, size] : llvm::zip(getDims(), dims)) {
    try {
      dim parsed = dim::parse(text.getValue());
      if (parsed.is_static() ? parsed.value() != size : !mlir::ShapedType::isDynamic(size))
        return emit_error() << "#kiln.dims entry '" << text.getValue()
                            << "' does not agree with the tensor's dimension";
      symbolic |= !parsed.is_static();
    } catch (const error& e) {
      return emit_error() << "#kiln.dims: " << e.what();
    }
  }
  if (!symbolic) return emit_error() << "#kiln.dims belongs to tensors with a symbolic dimension only";
  return mlir::success();
}

mlir::ParseResult KernelOp::parse(mlir::OpAsmParser& parser, mlir::OperationState& result) {
  auto function_type = [](mlir::Builder& builder, llvm::ArrayRef<mlir::Type> arguments,
                          llvm::ArrayRef<mlir::Type> results, mlir::function_interface_impl::VariadicFlag,
                          std::string&) { return builder.getFunctionType(arguments, results); };
  return mlir::function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), function_type,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(mlir::OpAsmPrinter& printer) {
  mlir::function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                                 getArgAttrsAttrName(), getResAttrsAttrName());
}

mlir::LogicalResult KernelOp::verify() {
  if (getBody().empty() || getBody().front().empty()) return emitOpError("has no body");
  auto terminator = llvm::dyn_cast<ReturnOp>(getBody().front().back());
  if (!terminator) return emitOpError("must end with kiln.return");
  if (terminator.getOutputs().empty()) return emitOpError("has no output");
  if (terminator->getOperandTypes() != getResultTypes())
    return terminator.emitOpError("returns other types than the kernel declares");
  for (mlir::Type type : getArgumentTypes())
    if (!llvm::isa<mlir::RankedTensorType>(type))
      return emitOpError("takes something other than ranked tensors: ") << type;
  return mlir::success();
}

mlir::LogicalResult ConstantOp::verify() {
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(getValue());
  if (!dense || !dense.isSplat()) return emitOpError("must hold one value in every element");
  if (dense.getType() != getType()) return emitOpError("has a result type other than its value's");
  return mlir::success();
}

mlir::OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

}  // namespace kiln::dialect
