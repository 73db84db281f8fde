def Kiln_ReduceOp : Kiln_Unary<"reduce"> {
  let summary = "kind: sum, mean, max, min, product.";
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$kind, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
}

def Kiln_ArgReduceOp : Kiln_Unary<"arg_reduce"> {
  let summary = "The index (i64) of the largest or smallest element along `axis`.";
  let arguments = (ins AnyRankedTensor:$input, BoolAttr:$largest, I64Attr:$axis, BoolAttr:$keep_dims, BoolAttr:$select_last);
}
