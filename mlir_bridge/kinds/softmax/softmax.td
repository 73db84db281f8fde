def Kiln_SoftmaxOp : Kiln_Unary<"softmax"> {
  let summary = "Along `axis`; `logarithm` gives its logarithm.";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$axis, BoolAttr:$logarithm);
}
