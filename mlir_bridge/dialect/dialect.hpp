// The generated classes of the `kiln` dialect (ops.td): kiln::dialect::DotOp, ConvolutionOp, ... and KilnDialect.
// Internal to mlir_bridge. The verifier of every operation rebuilds the IR operation and compares the inferred shape
// with the result types. So code that receives a verified kernel need not check shapes, ranks or attribute values
// again.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kiln::dialect {

// Rebuilds the IR operation of `op` and compares the shapes it infers with the result types; emits an error if they
// differ.
mlir::LogicalResult check_shapes(mlir::Operation* op);

template <class ConcreteOp>
class ShapeChecked : public mlir::OpTrait::TraitBase<ConcreteOp, ShapeChecked> {
 public:
  static mlir::LogicalResult verifyTrait(mlir::Operation* op) { return check_shapes(op); }
};

}  // namespace kiln::dialect

#include "mlir_bridge/dialect/dialect.hpp.inc"
#define GET_ATTRDEF_CLASSES
#include "mlir_bridge/dialect/attrdef.hpp.inc"
#define GET_OP_CLASSES
#include "mlir_bridge/dialect/op.hpp.inc"
