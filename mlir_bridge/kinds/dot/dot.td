def Kiln_DotOp : Kiln_Operation<"dot"> {
  let summary = "[batch..., M, K] x [batch..., K, N] -> [batch..., M, N].";
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, BoolAttr:$transpose_a, BoolAttr:$transpose_b,
                       OptionalAttr<I64Attr>:$left_bits);
  let results = (outs AnyRankedTensor:$result);
}
