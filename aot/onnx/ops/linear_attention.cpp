// Layers with a recurrent state of fixed size: LinearAttention, and CausalConvWithState, which models put before it.
#include <algorithm>
#include <cmath>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/attention_parts.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/gated_delta_net.hpp"
#include "aot/onnx/ops/linear_recurrence.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Attributes that only onnxruntime's own versions of these operators have, with the values that change nothing.
void refuse_extensions(node& n) {
  for (const auto& [name, usual] : {std::pair{"ndim", 1},
                                    {"state_window", 0},
                                    {"state_update_capacity", 0},
                                    {"state_length", 0},
                                    {"input_channels", 0},
                                    {"input_channel_offset", 0},
                                    {"state_channels_last", -1}})
    if (const std::int64_t given = n.integer(name, usual); given != usual)
      refuse(std::string(name) + "=" + std::to_string(given) + " is not supported, only " + std::to_string(usual));
}

// inputs: X [B, C, L], weights [C, 1, k], bias [C], past state [B, C, (k-1)*dilation]. outputs: Y [B, C, L], present
// state. With channels_last X, Y and the states have their last two axes swapped.
std::vector<value> causal_convolution(node& n) {
  refuse_extensions(n);
  builder& b = n.b;
  const bool channels_last = n.integer("channels_last", 0) != 0;
  const auto channels_first = [&](value v) { return channels_last ? b.permuted(v, {0, 2, 1}) : v; };
  value x = n.in(0);
  if (n.rank(0) != 3 || n.rank(1) != 3)
    invalid("needs [batch, channels, length] and [channels, 1, k], not " + n.type(0).str() + " and " + n.type(1).str());
  x = channels_first(x);
  const dim channels = n.dims(1)[0], window = n.dims(1)[2], length = x.type().dims.at(2);
  b.need_equal(x.type().dims.at(1), channels, "channels of input and weights");
  if (!channels.is_static() || !window.is_static()) refuse("the shape of the weights must be known");
  if (window.value() < 1) invalid("the weights " + n.type(1).str() + " have no window");
  const std::int64_t dilation = n.integer("dilation", 1);
  if (dilation < 1) invalid("dilation " + std::to_string(dilation) + " is below 1");
  const std::int64_t before = (window.value() - 1) * dilation;
  std::string activation = one_of(n, "activation", "none", {"none", "silu", "swish"});
  bool past = n.has(3) && before > 0;
  // Without a past state, the convolution itself pads with zeros.
  value whole = past ? b.add(concat{2}, {channels_first(n.in(3)), x}) : x;
  value y =
      b.add(convolution{{1}, {dilation}, {past ? 0 : before}, {0}, channels.value(), tensor_layout::channels_first},
            {whole, n.in(1)});
  if (n.has(2)) y = b.binary(fn::add, y, b.along_axis(n.in(2), 1, 3));
  if (activation != "none") y = b.binary(fn::mul, y, b.unary(fn::sigmoid, y));
  if (!n.wants(1)) return {channels_first(y)};
  if (!past && before > 0) {
    pad zeros{{0, 0, before}, {0, 0, 0}, pad_mode::constant_, 0};
    whole = b.add(std::move(zeros), {x});
  }
  return {channels_first(y), channels_first(b.slice_from(whole, 2, length, before, 1))};
}

// Checks that the inputs match the rule: `gated` needs decay, `delta` needs beta, `gated_delta` needs both.
void check_rule(node& n) {
  std::string rule = one_of(n, "update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"});
  if (n.has(4) != rule.starts_with("gated")) invalid("update_rule '" + rule + "' and the input decay do not agree");
  if (n.has(5) != rule.ends_with("delta")) invalid("update_rule '" + rule + "' and the input beta do not agree");
}

std::int64_t known_width(node& n, std::size_t i) {
  if (n.rank(i) != 3) invalid("input " + std::to_string(i) + " is " + n.type(i).str() + ", not of rank 3");
  if (!n.dims(i)[2].is_static()) refuse("the last axis of input " + std::to_string(i) + " must be known");
  return n.dims(i)[2].value();
}

// inputs: query [B, T, N*K], key [B, T, M*K], value [B, T, G*V], state [B, G, K, V], decay, beta. outputs: Y, state. N
// is a multiple of G or divides it, and M divides G: heads of queries and keys then serve several heads of values.
std::vector<value> linear_attention(node& n) {
  refuse_extensions(n);
  builder& b = n.b;
  check_rule(n);
  std::int64_t heads = n.integer("q_num_heads", 0), groups = n.integer("kv_num_heads", 0);
  if (heads < 1 || groups < 1 || (heads % groups && groups % heads))
    invalid("q_num_heads " + std::to_string(heads) + " is no multiple of kv_num_heads " + std::to_string(groups) +
            " and does not divide it");
  const std::int64_t depth = known_width(n, 0) / heads, value_depth = known_width(n, 2) / groups;
  if (depth < 1) invalid("its heads have no elements");
  const std::int64_t key_heads = known_width(n, 1) / depth;
  if (known_width(n, 0) != heads * depth || known_width(n, 1) != key_heads * depth || key_heads < 1 ||
      groups % key_heads || n.dims(2)[2] != dim(groups * value_depth))
    invalid("its heads do not divide " + n.type(0).str() + ", " + n.type(1).str() + " and " + n.type(2).str());
  const dim batch = n.dims(0)[0], steps = n.dims(0)[1];
  for (std::size_t i : {1, 2, 4, 5})
    if (n.has(i)) {
      known_width(n, i);
      b.need_equal(batch, n.dims(i)[0], "the batch of its inputs");
      b.need_equal(steps, n.dims(i)[1], "the steps of its inputs");
    }
  element_type type = n.type(0).type, wide = compute_type(type);
  auto timed = [&](std::size_t i, const std::vector<dim>& rest) {
    std::vector<dim> dims{batch, steps};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return b.permuted(b.with_dims(b.to_type(n.in(i), wide), dims), {1, 0, 2, 3, 4});
  };
  double scale = n.real("scale", 0);
  auto shared = [&](std::size_t i, std::int64_t own) {
    value whole = b.with_dims(b.to_type(n.in(i), wide), {batch, steps, own, depth});
    return b.permuted(shared_by_heads(b, whole, groups), {1, 0, 2, 3, 4});
  };
  recurrence_inputs x{heads < groups ? shared(0, heads) : timed(0, {groups, heads / groups, depth}),
                      key_heads < groups ? shared(1, key_heads) : timed(1, {groups, 1, depth}),
                      timed(2, {groups, 1, value_depth}),
                      {},
                      {}};
  x.query = b.binary(fn::mul, x.query, scale == 0 ? 1 / std::sqrt(static_cast<double>(depth)) : scale);
  if (n.has(4)) {
    std::int64_t width = known_width(n, 4);
    if (width != groups && width != groups * depth)
      invalid("decay " + n.type(4).str() + " has neither an element per head nor one per column of the key");
    x.decay = b.unary(fn::exp, timed(4, {groups, width / groups, 1}));
  }
  if (n.has(5)) {
    std::int64_t width = known_width(n, 5);
    if (width != groups && width != 1) invalid("beta " + n.type(5).str() + " has neither one element per head nor one");
    x.beta = timed(5, {width, 1, 1});
  }
  const std::vector<dim> state_dims{batch, groups, depth, value_depth};
  value state = n.has(3) ? b.to_type(n.in(3), wide) : b.broadcast_to(b.scalar(wide, 0), state_dims);
  if (state.type().rank() != 4 || !(state.type().dims == state_dims))
    invalid("past_state is " + n.type(3).str() + ", not " + shape{wide, state_dims}.str());
  const recurrence_result done = run_recurrence(n, x, state);
  value y = b.with_dims(b.permuted(done.sums, {1, 0, 2, 3, 4}), {batch, steps, std::max(heads, groups) * value_depth});
  return {b.to_type(y, type), b.to_type(done.state, n.has(3) ? n.type(3).type : type)};
}

// The gates of a gated delta rule, computed in f32. inputs: a [B, T, H], bias and scale of the decay [H], b [B, T, H].
// outputs: scale * softplus(a + bias), sigmoid(b).
std::vector<value> linear_attention_gate(node& n) {
  builder& b = n.b;
  auto real = [&](std::size_t i) { return b.to_type(n.in(i), element_type::f32); };
  value decay = b.binary(fn::mul, softplus(b, b.binary(fn::add, real(0), real(1))), real(2));
  if (decay.type().dims != n.dims(0)) invalid("bias " + n.type(1).str() + " does not fit a " + n.type(0).str());
  std::vector<value> results{b.to_type(decay, n.type(0).type)};
  if (n.wants(1)) results.push_back(b.to_type(b.unary(fn::sigmoid, real(3)), n.type(3).type));
  return results;
}

constexpr operator_row rows[] = {
    {"LinearAttention", linear_attention, 27},
    {"LinearAttentionGate", linear_attention_gate, 1, "", microsoft_domain},
    {"GatedDeltaNet", gated_delta_net, 1, "no state_update", microsoft_domain},
    {"CausalConvWithState", causal_convolution, 27},
    {"LinearAttention", linear_attention, 1, "no state_window", microsoft_domain},
    {"CausalConvWithState", causal_convolution, 1, "ndim 1; no state_window and nothing else that only CUDA has",
     microsoft_domain},
};

}  // namespace

std::span<const operator_row> linear_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
