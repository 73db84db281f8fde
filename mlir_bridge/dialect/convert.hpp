// Between the IR and the `kiln` dialect, table-driven by the operations' reflection: a new IR operator needs its
// definition in ops.td and nothing here. Internal to mlir_bridge. No state; safe on any thread of a context that allows
// threads.
#pragma once

#include <span>
#include <vector>

#include "ir/operation.hpp"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir_bridge/dialect/dialect.hpp"

namespace kiln::dialect {

// f8e4m3 is f8E4M3FN; signed integers are signless (i8), unsigned ones are ui8, bool is i1.
mlir::Type to_mlir_type(mlir::MLIRContext* context, element_type type);
// Throws error{unsupported} for a type that the IR does not have.
element_type to_element_type(mlir::Type type);

// A ranked tensor; `?` and a #kiln.dims encoding where the shape is symbolic.
mlir::RankedTensorType to_mlir_type(mlir::MLIRContext* context, const shape& type);
// Throws error{unsupported} for anything but a tensor as to_mlir_type makes it.
shape to_shape(mlir::Type type);
std::vector<shape> to_shapes(mlir::TypeRange types);

// The IR operation that a kiln operation (not kernel, return or constant) stands for:
// to_operation(op).get_if<convolution>() and so on. The second form takes the result shapes, which hold some of its
// fields, from `results` instead of the operation's own types. Throws error{corrupted} where an attribute is missing,
// superfluous or of the wrong kind.
operation to_operation(mlir::Operation* op);
operation to_operation(mlir::Operation* op, std::span<const shape> results);

// Appends the kiln operation for `op`. Throws error{unsupported} for an operator that cannot stand inside a kernel.
mlir::Operation* create_operation(mlir::OpBuilder& builder, const operation& op, mlir::ValueRange inputs,
                                  std::span<const shape> outputs);

// A literal with one value in every element. to_splat throws error{unsupported} for other literals; to_literal for one
// above a GiB.
mlir::DenseElementsAttr to_splat(mlir::MLIRContext* context, const literal& data);
literal to_literal(ConstantOp op);

}  // namespace kiln::dialect
