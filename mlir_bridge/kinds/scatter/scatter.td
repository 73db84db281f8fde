def Kiln_ScatterElementsOp : Kiln_Operation<"scatter_elements"> {
  let summary = "ONNX ScatterElements; reduction: none, add, mul, min, max.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, AnyRankedTensor:$updates, I64Attr:$axis, StrAttr:$reduction);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_ScatterNdOp : Kiln_Operation<"scatter_nd"> {
  let summary = "ONNX ScatterND; reduction: none, add, mul, min, max.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, AnyRankedTensor:$updates, StrAttr:$reduction);
  let results = (outs AnyRankedTensor:$result);
}
