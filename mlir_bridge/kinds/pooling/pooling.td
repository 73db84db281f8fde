def Kiln_PoolingOp : Kiln_Unary<"pooling"> {
  let summary = "kind: max, average.";
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$kind, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_begin, DenseI64ArrayAttr:$pads_end, BoolAttr:$count_padding,
                       BoolAttr:$ceil_mode, StrAttr:$layout);
}
