#include "aot/onnx/ops/gated_delta_net.hpp"

#include <cmath>
#include <limits>

#include "aot/onnx/ops/attention_parts.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/linear_recurrence.hpp"
#include "aot/onnx/ops/packed_tokens.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

enum input : std::size_t { query_, key_, value_, cu_seqlens, decay_, beta_, state_, a_log, dt_bias };

struct sizes {
  dim batch, steps;
  std::int64_t query_heads, value_heads, depth, value_depth;
};

struct operands {
  value query, key, values;  // [B, T, heads, depth]
};

// Rows of tokens as [B, T, ...]. Tokens that are not divided into sequences have the batch of the state.
value by_sequence(node& n, value x, const sizes& s, std::vector<dim> rest) {
  rest.insert(rest.begin(), {s.batch, s.steps});
  return n.b.with_dims(n.b.to_type(x, element_type::f32), rest);
}

std::int64_t known_axis(const node& n, std::size_t i, std::size_t axis) {
  if (axis >= n.rank(i)) invalid("input " + std::to_string(i) + " is " + n.type(i).str() + ", whose rank is too low");
  return static_dim(n.dims(i)[axis], "axis " + std::to_string(axis) + " of input " + std::to_string(i));
}

// Without key and value, query holds all three: [tokens, 2*query_heads*depth + value_heads*value_depth].
operands separated(node& n, sizes& s) {
  builder& b = n.b;
  const bool packed = !n.has(key_);
  if (packed && !n.has(state_)) invalid("query is packed, so initial_state must tell the sizes of heads");
  const std::size_t tokens = n.rank(query_) - (packed ? 1 : 2);  // the number of axes that tokens have
  if (n.rank(query_) < 2 || tokens < 1 || tokens > 2) invalid("query is " + n.type(query_).str());
  if (n.has(cu_seqlens)) {
    if (tokens != 1)
      invalid("sequences of different lengths have one axis of tokens, query is " + n.type(query_).str());
  } else if (tokens == 1 && !n.has(state_)) {
    invalid("initial_state must tell the batch");
  }
  s.batch = n.has(cu_seqlens) ? dim(1) : tokens == 2 ? n.dims(query_)[0] : n.dims(state_)[0];
  s.steps = tokens == 2 ? n.dims(query_)[1] : n.dims(query_)[0] / s.batch;
  if (packed) {
    s.value_heads = known_axis(n, state_, 1), s.value_depth = known_axis(n, state_, 2),
    s.depth = known_axis(n, state_, 3);
    const std::int64_t rest = known_axis(n, query_, tokens) - s.value_heads * s.value_depth;
    if (s.depth < 1 || rest < 0 || rest % (2 * s.depth))
      invalid("query " + n.type(query_).str() + " does not fit initial_state " + n.type(state_).str());
    s.query_heads = rest / (2 * s.depth);
    const auto axis = static_cast<std::int64_t>(tokens);
    auto part = [&](std::int64_t start, std::int64_t heads, std::int64_t depth) {
      return by_sequence(n, b.slice_axis(n.in(query_), axis, start, heads * depth), s, {heads, depth});
    };
    const std::int64_t width = s.query_heads * s.depth;
    return {part(0, s.query_heads, s.depth), part(width, s.query_heads, s.depth),
            part(2 * width, s.value_heads, s.value_depth)};
  }
  s.query_heads = known_axis(n, query_, tokens), s.depth = known_axis(n, query_, tokens + 1);
  s.value_heads = known_axis(n, value_, tokens), s.value_depth = known_axis(n, value_, tokens + 1);
  if (n.rank(key_) != n.rank(query_) || n.rank(value_) != n.rank(query_) || n.dims(key_) != n.dims(query_))
    invalid("query " + n.type(query_).str() + ", key " + n.type(key_).str() + " and value " + n.type(value_).str() +
            " do not fit");
  return {by_sequence(n, n.in(query_), s, {s.query_heads, s.depth}),
          by_sequence(n, n.in(key_), s, {s.query_heads, s.depth}),
          by_sequence(n, n.in(value_), s, {s.value_heads, s.value_depth})};
}

// Divides each vector along the last axis by its length.
value unit_vectors(builder& b, value x) {
  value squares = b.reduced(reduction_kind::sum, b.binary(fn::mul, x, x), {3}, true);
  squares = b.binary(fn::max, squares, static_cast<double>(std::numeric_limits<float>::min()));
  return b.binary(fn::mul, x, b.unary(fn::rsqrt, squares));
}

// The logarithm of the decay: [B, T, value heads, 1 or depth].
value log_decay(node& n, const sizes& s) {
  builder& b = n.b;
  const std::string kind = one_of(n, "gate_activation", "none", {"none", "softplus", "qwen", "sigmoid", "kda"});
  const bool each_column = n.type(decay_).rank() > n.type(query_).rank() - (n.has(key_) ? 1 : 0);
  value x = by_sequence(n, n.in(decay_), s, {s.value_heads, each_column ? s.depth : 1});
  if (kind == "none") return x;
  if (!n.has(a_log) || !n.has(dt_bias)) invalid("gate_activation '" + kind + "' needs a_log and dt_bias");
  auto of_heads = [&](std::size_t i) {
    const dim columns = n.type(i).elements() / dim(s.value_heads);
    return b.with_dims(b.to_type(n.in(i), element_type::f32), {s.value_heads, columns});
  };
  x = b.binary(fn::add, x, of_heads(dt_bias));
  const value rate = b.unary(fn::exp, of_heads(a_log));
  if (kind == "softplus" || kind == "qwen") return b.binary(fn::mul, softplus(b, x), b.unary(fn::neg, rate));
  return b.binary(fn::mul, b.unary(fn::sigmoid, b.binary(fn::mul, x, rate)), n.real("gate_lower_bound", -5));
}

// Sequences of different lengths: every sequence takes part in every step, but a step changes only the state of its own
// sequence. The inputs [T, 1, ...] become [T, B, ...].
packed_tokens divide(node& n, const sizes& s, recurrence_inputs& x) {
  builder& b = n.b;
  if (n.rank(cu_seqlens) != 1) invalid("cu_seqlens is " + n.type(cu_seqlens).str());
  const dim sequences = n.has(state_) ? n.dims(state_)[0] : n.dims(cu_seqlens)[0] - dim(1);
  const packed_tokens p = packed_tokens_of(b, s.steps, sequences, n.in(cu_seqlens));
  value own =
      b.binary(fn::equal, b.with_dims(p.sequence_of, {s.steps, 1}), b.iota_like(element_type::i64, {1, sequences}, 1));
  own = b.with_dims(own, {s.steps, sequences, 1, 1, 1});
  auto spread = [&](value v) {
    auto dims = v.type().dims;
    dims[1] = sequences;
    return b.broadcast_to(v, dims);
  };
  auto only_own = [&](value v, double other) { return b.where(own, spread(v), b.scalar(v.type().type, other)); };
  x.query = spread(x.query), x.values = spread(x.values), x.key = only_own(x.key, 0);
  if (x.decay) x.decay = only_own(x.decay, 1);
  if (x.beta) x.beta = spread(x.beta);
  return p;
}

// The sums [T, B, G, 1, V] of the sequence of each step, [T, 1, G, 1, V].
value own_sums(builder& b, value sums, const packed_tokens& p) {
  auto dims = sums.type().dims;
  dims[1] = 1;
  value index = b.broadcast_to(b.with_dims(p.sequence_of, {p.tokens, 1, 1, 1, 1}), dims);
  return b.add(gather_elements{1}, {sums, index});
}

}  // namespace

std::vector<value> gated_delta_net(node& n) {
  builder& b = n.b;
  if (n.integer("state_update_capacity", 0) != 0) refuse("state_update_capacity is not supported, only 0");
  if (n.has(key_) != n.has(value_)) invalid("key and value must both be there, or neither");
  const std::string rule = one_of(n, "update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"});
  sizes s{};
  operands x = separated(n, s);
  if (s.depth < 1 || s.query_heads < 1 || s.value_heads % s.query_heads)
    invalid(std::to_string(s.value_heads) + " heads of values are no multiple of " + std::to_string(s.query_heads));
  if (n.integer("qk_l2_norm", 0) != 0) x.query = unit_vectors(b, x.query), x.key = unit_vectors(b, x.key);
  const double scale = n.real("scale", 0);
  x.query = b.binary(fn::mul, x.query, scale == 0 ? 1 / std::sqrt(static_cast<double>(s.depth)) : scale);

  auto timed = [&](value v) { return b.permuted(v, {1, 0, 2, 3, 4}); };
  auto repeated = [&](value v) { return timed(shared_by_heads(b, v, s.value_heads)); };
  recurrence_inputs steps{repeated(x.query),
                          repeated(x.key),
                          timed(b.with_dims(x.values, {s.batch, s.steps, s.value_heads, 1, s.value_depth})),
                          {},
                          {}};
  if (rule.starts_with("gated")) {
    if (!n.has(decay_)) invalid("update_rule '" + rule + "' needs decay");
    value decay = b.unary(fn::exp, log_decay(n, s));
    auto dims = decay.type().dims;
    steps.decay = timed(b.with_dims(decay, {dims[0], dims[1], dims[2], dims[3], 1}));
  }
  if (rule.ends_with("delta")) {
    if (!n.has(beta_)) invalid("update_rule '" + rule + "' needs beta");
    value beta = by_sequence(n, n.in(beta_), s, {s.value_heads, 1, 1});
    if (one_of(n, "beta_activation", "none", {"none", "sigmoid"}) == "sigmoid") beta = b.unary(fn::sigmoid, beta);
    steps.beta = timed(beta);
  }
  std::optional<packed_tokens> packed;
  if (n.has(cu_seqlens)) packed = divide(n, s, steps);
  const std::vector<dim> state_dims{packed ? packed->sequences : s.batch, s.value_heads, s.value_depth, s.depth};
  value state = n.has(state_) ? b.with_dims(n.in(state_), state_dims)
                              : b.broadcast_to(b.scalar(element_type::f32, 0), state_dims);
  const recurrence_result done = run_recurrence(n, steps, b.permuted(state, {0, 1, 3, 2}));
  auto out = n.dims(query_);
  out.resize(out.size() - (n.has(key_) ? 2 : 1));
  out.insert(out.end(), {s.value_heads, s.value_depth});
  value sums = packed ? own_sums(b, done.sums, *packed) : done.sums;
  value y = b.with_dims(b.permuted(sums, {1, 0, 2, 3, 4}), out);
  return {b.to_type(y, n.type(query_).type), b.permuted(done.state, {0, 1, 3, 2})};
}

}  // namespace kiln::onnx_import
