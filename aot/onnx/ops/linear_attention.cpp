// Layers with a recurrent state of fixed size: LinearAttention, and CausalConvWithState, which models put before it.
#include <cmath>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/attention_parts.hpp"
#include "aot/onnx/ops/contrib.hpp"
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

// The tensors that the recurrence reads, one slice for each time step. T is the axis of time; the inputs of a single
// step do not have it.
struct step_inputs {
  value query;   // [T, B, G, N/G, K], scaled
  value key;     // [T, B, G, 1, K]
  value values;  // [T, B, G, 1, V]
  value decay;   // [T, B, G, 1 or K, 1], a factor; may be empty
  value beta;    // [T, B, 1 or G, 1, 1]; may be empty
};

template <class F>
step_inputs each(const step_inputs& x, F f) {
  auto maybe = [&](value v) { return v ? f(v) : v; };
  return {f(x.query), f(x.key), f(x.values), maybe(x.decay), maybe(x.beta)};
}

struct step_result {
  value state, sums;  // [B, G, K, V], [B, G, N/G, V]
};

step_result step(builder& b, const step_inputs& x, value state) {
  element_type type = state.type().type;
  if (x.decay) state = b.binary(fn::mul, state, x.decay);
  value written = x.values;
  if (x.beta)
    written = b.binary(fn::mul, b.binary(fn::sub, written, b.add(dot{false, false, type}, {x.key, state})), x.beta);
  auto column = x.key.type().dims;
  std::swap(column[2], column[3]);
  state = b.binary(fn::add, state, b.binary(fn::mul, b.with_dims(x.key, column), written));
  return {state, b.add(dot{false, false, type}, {x.query, state})};
}

// Runs all steps in a loop. If the number of steps is open, the loop cannot collect the sums; it carries the whole
// tensor of sums and each step writes its row.
step_result all_steps(node& n, const step_inputs& x, value state) {
  builder& b = n.b;
  auto& import = n.owner.state();
  const dim steps = x.key.type().dims.at(0);
  bool open = !steps.is_static();
  auto sum_dims = x.query.type().dims;
  sum_dims.back() = x.values.type().dims.back();
  module& made = import.result.add_module("step_" + std::to_string(import.bodies++));
  builder body(made, b.knowledge(), import.budget);
  value iteration = made.add_parameter("iteration", {element_type::i64, {}});
  value go_on = made.add_parameter("condition", {element_type::boolean, {}});
  value carried = made.add_parameter("state", state.type()), sums;
  std::vector<value> arguments{b.dims_tensor({steps}, 0), b.scalar(element_type::boolean, 1), state};
  if (open) {
    arguments.push_back(b.broadcast_to(b.scalar(state.type().type, 0), sum_dims));
    sums = made.add_parameter("sums", arguments.back().type());
  }
  step_inputs now = each(x, [&](value v) {
    value whole = made.add_parameter("input_" + std::to_string(arguments.size()), v.type());
    arguments.push_back(v);
    return body.add(gather{0}, {whole, iteration});
  });
  step_result done = step(body, now, carried);
  if (open) {
    value here = body.binary(fn::equal, body.iota_like(element_type::i64, {steps}, 0), iteration);
    done.sums = body.where(body.along_axis(here, 0, sum_dims.size()), done.sums, sums);
  }
  made.set_outputs({go_on, done.state, done.sums}, {"condition", "state", "sums"});
  value first = b.add(loop{open ? 2 : 1, open ? -1 : steps.value()}, arguments, {&made});
  return {first, builder::output(first, 1)};
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

// inputs: query [B, T, N*K], key [B, T, G*K], value [B, T, G*V], state [B, G, K, V], decay, beta. outputs: Y, state.
std::vector<value> linear_attention(node& n) {
  refuse_extensions(n);
  builder& b = n.b;
  check_rule(n);
  std::int64_t heads = n.integer("q_num_heads", 0), groups = n.integer("kv_num_heads", 0);
  if (heads < 1 || groups < 1 || heads % groups)
    invalid("q_num_heads " + std::to_string(heads) + " is no multiple of kv_num_heads " + std::to_string(groups));
  std::int64_t depth = known_width(n, 1) / groups, value_depth = known_width(n, 2) / groups;
  if (known_width(n, 0) != heads * depth || known_width(n, 1) != groups * depth ||
      n.dims(2)[2] != dim(groups * value_depth))
    invalid("its heads do not divide " + n.type(0).str() + ", " + n.type(1).str() + " and " + n.type(2).str());
  if (depth < 1) invalid("its heads have no elements");
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
  step_inputs x{timed(0, {groups, heads / groups, depth}),
                timed(1, {groups, 1, depth}),
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
  step_result done;
  if (steps == dim(1)) {
    auto now = [&](value v) {
      auto dims = v.type().dims;
      return b.with_dims(v, std::vector<dim>(dims.begin() + 1, dims.end()));
    };
    done = step(b, each(x, now), state);
    done.sums = b.with_dims(done.sums, {1, batch, groups, heads / groups, value_depth});
  } else {
    done = all_steps(n, x, state);
  }
  value y = b.with_dims(b.permuted(done.sums, {1, 0, 2, 3, 4}), {batch, steps, heads * value_depth});
  return {b.to_type(y, type), b.to_type(done.state, n.has(3) ? n.type(3).type : type)};
}

value softplus(builder& b, value x) {  // max(x, 0) + log(1 + exp(-|x|)): no overflow
  value tail = b.unary(fn::log, b.binary(fn::add, b.unary(fn::exp, b.unary(fn::neg, b.unary(fn::abs, x))), 1.0));
  return b.binary(fn::add, b.unary(fn::relu, x), tail);
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
    {"CausalConvWithState", causal_convolution, 27},
    {"LinearAttention", linear_attention, 1, "no state_window", microsoft_domain},
    {"CausalConvWithState", causal_convolution, 1, "ndim 1; no state_window and nothing else that only CUDA has",
     microsoft_domain},
};

}  // namespace

std::span<const operator_row> linear_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
