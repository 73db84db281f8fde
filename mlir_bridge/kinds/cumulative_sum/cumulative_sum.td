def Kiln_CumulativeSumOp : Kiln_Unary<"cumulative_sum"> {
  let summary = "The running sum along `axis`.";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$axis, BoolAttr:$exclusive, BoolAttr:$reverse);
}
