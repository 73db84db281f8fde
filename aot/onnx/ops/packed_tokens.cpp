#include "aot/onnx/ops/packed_tokens.hpp"

namespace kiln::onnx_import {

using fn = scalar_function;

packed_tokens packed_tokens_of(builder& b, const dim& tokens, const dim& sequences, value cumulative) {
  if (cumulative.type().rank() != 1)
    invalid("the starts of the sequences are " + cumulative.type().str() + ", not of rank 1");
  b.need_equal(cumulative.type().dims[0], sequences + dim(1), "the starts of the sequences");
  packed_tokens result{tokens, sequences, b.to_type(cumulative, element_type::i64), {}, {}, {}};
  const value ends = b.slice_axis(result.starts, 0, 1, sequences), first = b.slice_axis(result.starts, 0, 0, sequences);
  result.lengths = b.binary(fn::sub, ends, first);
  // A token belongs to the sequence after all those that end before it or at it.
  const value token = b.iota_like(element_type::i64, {tokens}, 0);
  value ended = b.binary(fn::less_equal, b.with_dims(ends, {1, sequences}), b.with_dims(token, {tokens, 1}));
  value number = b.reduced(reduction_kind::sum, b.to_type(ended, element_type::i64), {1}, false);
  result.sequence_of = b.binary(fn::min, number, b.dims_tensor({sequences - dim(1)}, 0));
  result.place_of = b.binary(fn::sub, token, b.add(gather{0}, {first, result.sequence_of}));
  return result;
}

}  // namespace kiln::onnx_import
