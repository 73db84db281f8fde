def Kiln_AttentionOp : Kiln_Operation<"attention"> {
  let summary = "softmax(scale * query key^T + mask) value, head by head; layouts: heads_first, sequence_first.";
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, Optional<AnyRankedTensor>:$mask, F64Attr:$scale,
                       BoolAttr:$causal, StrAttr:$query_layout, StrAttr:$key_layout, StrAttr:$value_layout, StrAttr:$output_layout);
  let results = (outs AnyRankedTensor:$result);
}
