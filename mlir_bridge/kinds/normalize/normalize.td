def Kiln_NormalizeOp : Kiln_Unary<"normalize"> {
  let summary = "Over `axes`; without `centered` the mean stays (RMS normalization).";
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$axes, F64Attr:$epsilon, BoolAttr:$centered);
}
