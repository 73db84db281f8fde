def Kiln_RecurrentOp : Kiln_Operation<"recurrent"> {
  let summary = "One direction of a recurrent layer; cell: rnn, gru, lstm. Only lstm has cell states.";
  let arguments = (ins AnyRankedTensor:$gates, AnyRankedTensor:$weights, AnyRankedTensor:$recurrent_bias, AnyRankedTensor:$initial_hidden,
                       Optional<AnyRankedTensor>:$initial_cell, StrAttr:$cell, BoolAttr:$reverse, BoolAttr:$linear_before_reset);
  let results = (outs AnyRankedTensor:$sequence, AnyRankedTensor:$final_hidden, Optional<AnyRankedTensor>:$final_cell);
}
