// onnxruntime's VarlenCausalConvWithState: a causal depthwise convolution over sequences of different lengths, each of
// which goes on from a state of its own.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/packed_tokens.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// inputs: X [T, C], weights [C, 1, K], the first token of each sequence, bias [C], states [B, C, L] with
// L = (K - 1) * dilation. outputs: Y [T, C], the states after the last tokens.
std::vector<value> varlen_convolution(node& n) {
  builder& b = n.b;
  if (n.integer("state_update_capacity", 0) != 0) refuse("state_update_capacity is not supported, only 0");
  if (n.has(6) || n.has(7)) refuse("kernel_delta and previous_mask are not supported; only CUDA has them");
  const std::string activation = one_of(n, "activation", "none", {"none", "silu", "swish"});
  if (n.rank(0) != 2 || n.rank(1) != 3 || n.rank(4) != 3)
    invalid("X " + n.type(0).str() + ", weights " + n.type(1).str() + " and states " + n.type(4).str() + " do not fit");
  const dim tokens = n.dims(0)[0], channels = n.dims(0)[1], sequences = n.dims(4)[0];
  const std::int64_t taps = static_dim(n.dims(1)[2], "the taps of the weights"), dilation = n.integer("dilation", 1),
                     length = (taps - 1) * dilation;
  if (dilation < 1 || taps < 1 || dilation > 1 << 20 || taps > 1 << 20 || n.dims(4)[2] != dim(length))
    invalid("states " + n.type(4).str() + " do not fit " + std::to_string(taps) + " taps with dilation " +
            std::to_string(dilation));
  b.need_equal(n.dims(4)[1], channels, "channels of X and of the states");
  b.need_equal(n.dims(1)[0], channels, "channels of X and of the weights");
  const packed_tokens p = packed_tokens_of(b, tokens, sequences, n.in(2));
  const element_type type = n.type(0).type, wide = compute_type(type);
  // The states of all sequences, then the tokens, as one list of rows.
  const dim state_rows = sequences * dim(length);
  value states = b.with_dims(b.permuted(n.in(4), {0, 2, 1}), {state_rows, channels});
  value all = b.add(concat{0}, {states, n.in(0)});
  // The row that holds position `place` of a sequence; places below 0 are in its state.
  auto row_of = [&](value sequence, value first, value place) {
    value in_state = b.binary(fn::add, b.binary(fn::mul, sequence, static_cast<double>(length)),
                              b.binary(fn::max, b.binary(fn::add, place, static_cast<double>(length)), 0.0));
    value in_tokens = b.binary(fn::add, b.binary(fn::add, first, place), b.dims_tensor({state_rows}, 0));
    return b.where(b.binary(fn::less, place, 0.0), in_state, in_tokens);
  };
  const value first = b.slice_axis(p.starts, 0, 0, sequences);
  auto column = [&](value v) { return b.with_dims(v, {v.type().dims[0], 1}); };
  value back = b.binary(fn::mul, b.iota_like(element_type::i64, {1, taps}, 1), static_cast<double>(dilation));
  value read = b.binary(fn::sub, b.binary(fn::add, column(p.place_of), back), static_cast<double>(length));
  value rows = row_of(column(p.sequence_of), column(b.add(gather{0}, {first, p.sequence_of})), read);
  value window = b.to_type(b.add(gather{0}, {all, rows}), wide);  // [T, K, C]
  value weights = b.permuted(b.with_dims(b.to_type(n.in(1), wide), {channels, taps}), {1, 0});
  value y = b.reduced(reduction_kind::sum, b.binary(fn::mul, window, weights), {1}, false);
  if (n.has(3)) y = b.binary(fn::add, y, b.to_type(n.in(3), wide));
  if (activation != "none") y = b.binary(fn::mul, y, b.unary(fn::sigmoid, y));
  // The last positions of each sequence become its state.
  if (length == 0) return {b.to_type(y, type), n.in(4)};
  value ends = b.binary(fn::add, b.iota_like(element_type::i64, {1, length}, 1), column(p.lengths));
  ends = b.binary(fn::sub, ends, static_cast<double>(length));
  value own = b.with_dims(b.iota_like(element_type::i64, {sequences}, 0), {sequences, 1});
  value after = b.permuted(b.add(gather{0}, {all, row_of(own, column(first), ends)}), {0, 2, 1});
  return {b.to_type(y, type), after};
}

constexpr operator_row rows[] = {
    {"VarlenCausalConvWithState", varlen_convolution, 1, "no state_update and nothing that only CUDA has",
     microsoft_domain},
};

}  // namespace

std::span<const operator_row> varlen_convolution_operators() { return rows; }

}  // namespace kiln::onnx_import
