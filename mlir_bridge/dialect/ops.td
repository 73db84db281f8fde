// The `kiln` dialect: the stable form of a portable kernel. One operation for each IR operator that may stand inside a
// fusion (ir/ops/), with the same attribute names and meaning; enums are strings, so that a new enumerator moves no number.
// What the result type already says (the element type of a conversion, the dims of a broadcast, the lengths of a slice) is not
// an attribute. Attributes are stored by name and none has a default here: a version changes what is written, never what a
// missing name means (see version.hpp before touching anything).
#ifndef KILN_MLIR_BRIDGE_DIALECT_OPS_TD
#define KILN_MLIR_BRIDGE_DIALECT_OPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kiln_Dialect : Dialect {
  let name = "kiln";
  let summary = "Whole-tensor operations of a portable kernel.";
  let cppNamespace = "::kiln::dialect";
  let useDefaultAttributePrinterParser = 1;
  // By name in a dictionary: positional properties would tie the bytecode to the order of declaration.
  let usePropertiesForAttributes = 0;
}

// --- attributes ---

def Kiln_DimsAttr : AttrDef<Kiln_Dialect, "Dims", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "dims";
  let summary = "The symbolic dimensions of a tensor type.";
  let description = [{
    One canonical kiln::dim text per axis, as the encoding of a tensor type that has `?` dimensions:
    `tensor<?x64xf32, #kiln.dims<["batch", "64"]>>`. A static tensor type has no encoding.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$dims);
  let assemblyFormat = "`<` `[` $dims `]` `>`";
}

// --- structure ---

def Kiln_KernelOp : Op<Kiln_Dialect, "kernel", [IsolatedFromAbove, SingleBlock, FunctionOpInterface]> {
  let summary = "One portable kernel: its block arguments are the inputs, what it returns the outputs.";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region* getCallableRegion() { return &getBody(); }
  }];
}

def Kiln_ReturnOp : Op<Kiln_Dialect, "return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "The outputs of a kernel.";
  let arguments = (ins Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}

// A trait whose verifier rebuilds the IR operation and holds its shape rule against the result types.
def Kiln_ShapeChecked : NativeOpTrait<"ShapeChecked"> { let cppNamespace = "::kiln::dialect"; }

class Kiln_Operation<string mnemonic> : Op<Kiln_Dialect, mnemonic, [Pure, Kiln_ShapeChecked]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class Kiln_Unary<string mnemonic> : Kiln_Operation<mnemonic> {
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_ConstantOp : Op<Kiln_Dialect, "constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "One value in every element; other constants are inputs of the kernel.";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::DenseElementsAttr":$value), [{
    $_state.addAttribute("value", value);
    $_state.addTypes(value.getType());
  }]>];
}

// --- elementwise (ir/ops/elementwise.hpp) ---

def Kiln_ElementwiseOp : Kiln_Operation<"elementwise"> {
  let summary = "Applies the scalar function of ir/scalar_function.hpp called `function`.";
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$function);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_ConvertOp : Kiln_Unary<"convert"> { let summary = "To the element type of the result."; }

def Kiln_BitCastOp : Kiln_Unary<"bit_cast"> { let summary = "The same bits in the element type of the result."; }

// --- movement (ir/ops/movement.hpp) ---

def Kiln_BroadcastOp : Kiln_Unary<"broadcast"> { let summary = "To the dims of the result, by numpy's rule."; }

def Kiln_ReshapeOp : Kiln_Unary<"reshape"> { let summary = "To the dims of the result, in row-major order."; }

def Kiln_TransposeOp : Kiln_Unary<"transpose"> {
  let summary = "result.dims[i] = input.dims[permutation[i]].";
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$permutation);
}

def Kiln_SliceOp : Kiln_Unary<"slice"> {
  let summary = "result[i...] = input[starts + i * steps]; the lengths are the dims of the result.";
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
}

def Kiln_PadOp : Kiln_Unary<"pad"> {
  let summary = "mode: constant (of `fill`), edge, reflect, wrap.";
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$before, DenseI64ArrayAttr:$after, StrAttr:$mode, F64Attr:$fill);
}

def Kiln_ConcatOp : Kiln_Operation<"concat"> {
  let summary = "Joins the inputs along `axis`.";
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_GatherOp : Kiln_Operation<"gather"> {
  let summary = "ONNX Gather.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_GatherElementsOp : Kiln_Operation<"gather_elements"> {
  let summary = "ONNX GatherElements.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_GatherNdOp : Kiln_Operation<"gather_nd"> {
  let summary = "ONNX GatherND.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, I64Attr:$batch_dims);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_IotaOp : Kiln_Operation<"iota"> {
  let summary = "Every element is its index along `axis`.";
  let arguments = (ins I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_ResizeOp : Kiln_Unary<"resize"> {
  let summary = "ONNX Resize without roi, to the dims of the result.";
  let arguments = (ins AnyRankedTensor:$input, DenseF64ArrayAttr:$scales, StrAttr:$mode, StrAttr:$coordinates, StrAttr:$nearest,
                       F64Attr:$cubic_coefficient, BoolAttr:$exclude_outside);
}

// --- anchors: mlir_bridge/kinds/NAME/NAME.td ---

include "mlir_bridge/kinds/operations.td"

#endif
