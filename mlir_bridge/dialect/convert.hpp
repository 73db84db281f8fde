// Converts between the IR and the `kiln` dialect, driven by the operations' reflection: a new IR operator needs only
// its definition in ops.td. Internal to mlir_bridge. Stateless; safe on any thread if the context allows
// multithreading.
#pragma once

#include <span>
#include <vector>

#include "ir/operation.hpp"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir_bridge/dialect/dialect.hpp"

namespace kiln::dialect {

// Maps f8e4m3 to f8E4M3FN, signed integers to signless ones (i8), unsigned ones to ui8, and bool to i1.
mlir::Type to_mlir_type(mlir::MLIRContext* context, element_type type);
// Throws error{unsupported} for a type that the IR does not have.
element_type to_element_type(mlir::Type type);

// Returns a ranked tensor type. Symbolic shapes have `?` dims and a #kiln.dims encoding.
mlir::RankedTensorType to_mlir_type(mlir::MLIRContext* context, const shape& type);
// Throws error{unsupported} for anything but a tensor type that to_mlir_type returns.
shape to_shape(mlir::Type type);
std::vector<shape> to_shapes(mlir::TypeRange types);

// Returns the IR operation that a kiln operation (not kernel, return or constant) represents:
// to_operation(op).get_if<convolution>() and so on. Some fields of operations are stored in the result shapes; the
// second form takes these from `results` instead of the operation's types. Throws error{corrupted} if an attribute is
// missing, superfluous or of the wrong kind.
operation to_operation(mlir::Operation* op);
operation to_operation(mlir::Operation* op, std::span<const shape> results);

// Appends the kiln operation for `op`. Throws error{unsupported} for an operator that is not allowed in a kernel.
mlir::Operation* create_operation(mlir::OpBuilder& builder, const operation& op, mlir::ValueRange inputs,
                                  std::span<const shape> outputs);

// A literal whose elements are all equal. to_splat throws error{unsupported} for other literals; to_literal for a
// literal above 1 GiB.
mlir::DenseElementsAttr to_splat(mlir::MLIRContext* context, const literal& data);
literal to_literal(ConstantOp op);

}  // namespace kiln::dialect
