def Kiln_TopKOp : Kiln_Operation<"top_k"> {
  let summary = "The k largest or smallest along `axis`, and their indices (i64).";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$k, I64Attr:$axis, BoolAttr:$largest);
  let results = (outs AnyRankedTensor:$values, AnyRankedTensor:$indices);
}
