def Kiln_ConvolutionOp : Kiln_Operation<"convolution"> {
  let summary = "layout: channels_first, channels_last.";
  let arguments = (ins AnyRankedTensor:$image, AnyRankedTensor:$weights, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin, DenseI64ArrayAttr:$pads_end, I64Attr:$groups, StrAttr:$layout);
  let results = (outs AnyRankedTensor:$result);
}

def Kiln_TransposedConvolutionOp : Kiln_Operation<"transposed_convolution"> {
  let summary = "The gradient of convolution with respect to its image.";
  let arguments = (ins AnyRankedTensor:$image, AnyRankedTensor:$weights, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin, DenseI64ArrayAttr:$pads_end, DenseI64ArrayAttr:$output_padding, I64Attr:$groups,
                       StrAttr:$layout);
  let results = (outs AnyRankedTensor:$result);
}
