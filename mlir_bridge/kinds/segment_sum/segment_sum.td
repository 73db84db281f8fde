def Kiln_SegmentSumOp : Kiln_Operation<"segment_sum"> {
  let summary = "The sum of the rows of each of `segments` ids; ids ascend.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$ids, I64Attr:$segments);
  let results = (outs AnyRankedTensor:$result);
}
