// MoE and QMoE: mixtures of experts, in which each token uses the k experts with the highest scores.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/packed_weights.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// One layer of all experts: weights [experts, outputs, inputs] and an optional bias [experts, outputs].
struct expert_layer {
  value weights, bias;
};

struct expert_layers {
  expert_layer first, second;
  // The linear half of a gated activation, if its weights are separate from the gate's; may be empty.
  expert_layer third = {};
};

struct activation_row {
  std::string_view name;
  value (*apply)(builder& b, value x);
};
constexpr activation_row activations[] = {
    {"relu", [](builder& b, value x) { return b.unary(fn::relu, x); }},
    {"relu2",
     [](builder& b, value x) {
       value y = b.unary(fn::relu, x);
       return b.binary(fn::mul, y, y);
     }},
    {"gelu", tanh_gelu},
    {"silu", [](builder& b, value x) { return b.binary(fn::mul, x, b.unary(fn::sigmoid, x)); }},
    {"identity", [](builder&, value x) { return x; }},
};

// Returns gate * sigmoid(alpha * gate) * (linear + beta). Both halves are clamped first.
value gated_swish(node& n, value gate, value linear) {
  builder& b = n.b;
  if (n.integer("swiglu_limit_after_activation", 0)) refuse("swiglu_limit_after_activation=1 is not supported");
  if (n.has_attribute("swiglu_limit")) {
    double limit = n.real("swiglu_limit", 0);
    gate = b.binary(fn::min, gate, limit);
    linear = b.binary(fn::max, b.binary(fn::min, linear, limit), -limit);
  }
  double alpha = n.real("activation_alpha", 1), beta = n.real("activation_beta", 0);
  value swish = b.binary(fn::mul, gate, b.unary(fn::sigmoid, alpha == 1 ? gate : b.binary(fn::mul, gate, alpha)));
  return b.binary(fn::mul, swish, beta == 0 ? linear : b.binary(fn::add, linear, beta));
}

// Splits the last axis into the gate and the linear half. They are interleaved (fusion 1) or concatenated (fusion 2).
std::pair<value, value> halves(builder& b, value fused, std::int64_t fusion) {
  auto dims = fused.type().dims;
  if (!dims.back().is_static() || dims.back().value() % 2)
    invalid("a fused gate has an even size, not " + dims.back().str());
  std::int64_t half = dims.back().value() / 2;
  auto last = static_cast<std::int64_t>(dims.size()) - 1;
  if (fusion == 2) return {b.slice_axis(fused, last, 0, half), b.slice_axis(fused, last, half, half)};
  dims.back() = half;
  auto paired = dims;
  paired.emplace_back(2);
  value pairs = b.with_dims(fused, paired);
  return {b.with_dims(b.slice_axis(pairs, last + 1, 0, 1), dims),
          b.with_dims(b.slice_axis(pairs, last + 1, 1, 1), dims)};
}

// Applies one layer of every expert to x [experts, tokens, inputs].
value through(builder& b, value x, const expert_layer& layer) {
  value y = b.add(dot{false, true, x.type().type}, {x, layer.weights});
  if (!layer.bias) return y;
  const auto bias = layer.bias.type().dims;
  if (bias.size() != 2) invalid("a bias of experts has rank 2, not " + layer.bias.type().str());
  return b.binary(fn::add, y, b.to_type(b.with_dims(layer.bias, {bias[0], 1, bias[1]}), y.type().type));
}

value activated_hidden(node& n, value x, const expert_layers& experts) {
  builder& b = n.b;
  std::string kind = n.text("activation_type", "relu");
  std::int64_t fusion = n.integer("swiglu_fusion", 0);
  value hidden = through(b, x, experts.first);
  if (kind == "swiglu" || kind == "geglu") {
    value gate = hidden, linear;
    if (experts.third.weights) {
      if (fusion != 0 || kind == "geglu") invalid(kind + " has both a fused gate and weights of a third layer");
      linear = through(b, x, experts.third);
    } else {
      if (fusion != 1 && fusion != 2) invalid("swiglu_fusion is " + std::to_string(fusion) + " without a third layer");
      std::tie(gate, linear) = halves(b, hidden, fusion);
    }
    return kind == "swiglu" ? gated_swish(n, gate, linear) : b.binary(fn::mul, tanh_gelu(b, gate), linear);
  }
  for (const activation_row& row : activations)
    if (row.name == kind) {
      value y = row.apply(b, hidden);
      return experts.third.weights ? b.binary(fn::mul, y, through(b, x, experts.third)) : y;
    }
  refuse("activation_type '" + kind + "' is not supported");
}

// Returns the weight of each expert for each token, f32[tokens, experts]. It is 0 for experts that the token does not
// use.
value mixing_weights(node& n, value scores, value routing) {
  builder& b = n.b;
  const auto dims = scores.type().dims;
  std::int64_t k = n.integer("k", 1);
  value chances = b.add(softmax{1, false}, {b.to_type(scores, element_type::f32)});
  value best = b.add(top_k{k, 1, true}, {chances});
  value picked = b.with_dims(builder::output(best, 1), {dims.at(0), k, 1});
  value chosen = b.binary(fn::equal, picked, b.iota_like(element_type::i64, {1, 1, dims.at(1)}, 2));
  value kept = b.reduced(reduction_kind::max, chosen, {1}, false);
  value weights =
      b.where(kept, routing ? b.to_type(routing, element_type::f32) : chances, b.scalar(element_type::f32, 0));
  if (!n.integer("normalize_routing_weights", 0)) return weights;
  value sum = b.reduced(reduction_kind::sum, weights, {1}, true);
  return b.binary(fn::div, weights, b.where(b.binary(fn::equal, sum, 0.0), b.scalar(element_type::f32, 1), sum));
}

// The k best experts of each token and their weights; both are [tokens, k].
struct selection {
  value experts, weights;
};

selection best_experts(node& n, value scores, value routing) {
  builder& b = n.b;
  value chances = b.add(softmax{1, false}, {b.to_type(scores, element_type::f32)});
  value best = b.add(top_k{n.integer("k", 1), 1, true}, {chances});
  value experts = builder::output(best, 1);
  value weights = routing ? b.add(gather_elements{1}, {b.to_type(routing, element_type::f32), experts}) : best;
  if (!n.integer("normalize_routing_weights", 0)) return {experts, weights};
  value sum = b.reduced(reduction_kind::sum, weights, {1}, true);
  sum = b.where(b.binary(fn::equal, sum, 0.0), b.scalar(element_type::f32, 1), sum);
  return {experts, b.binary(fn::div, weights, sum)};
}

// Computes the mixture for a few tokens [tokens, inputs]. Copies the weights of the selected experts, so only these are
// read and multiplied.
value few_tokens(node& n, value x, value scores, const expert_layers& experts, value routing) {
  builder& b = n.b;
  const selection best = best_experts(n, scores, routing);
  const dim tokens = x.type().dims.at(0), width = x.type().dims.at(1), k = best.experts.type().dims.at(1),
            pairs = tokens * k;
  value which = b.with_dims(best.experts, {pairs});
  auto chosen = [&](const expert_layer& layer) {
    auto rows = [&](value all) { return all ? b.add(gather{0}, {all, which}) : value{}; };
    return expert_layer{rows(layer.weights), rows(layer.bias)};
  };
  const expert_layers own{chosen(experts.first), chosen(experts.second), chosen(experts.third)};
  value rows = b.broadcast_to(b.with_dims(x, {tokens, 1, width}), {tokens, k, width});
  value out = through(b, activated_hidden(n, b.with_dims(rows, {pairs, 1, width}), own), own.second);
  out = b.with_dims(b.to_type(out, element_type::f32), {tokens, k, out.type().dims.back()});
  return b.reduced(reduction_kind::sum, b.binary(fn::mul, out, b.with_dims(best.weights, {tokens, k, 1})), {1}, false);
}

// Returns true if copying the weights of the selected experts (a read, a write and another read) moves fewer bytes than
// reading the weights of all experts. Packed weights are not copied.
bool selects_few(node& n, const dim& tokens, const dim& experts, value weights) {
  const std::int64_t copies = 3 * n.integer("k", 1);
  auto most = n.b.facts().upper(tokens);
  return module::constant(weights) && most && experts.is_static() &&
         *most <= experts.value() / std::max<std::int64_t>(copies, 1);
}

// Computes the mixture for the tokens (input 0) and the router's scores (input 1). `routing`, if not empty, holds the
// weights [tokens, experts] to use in place of the softmax of the scores. Unless there are only a few tokens, every
// expert is evaluated for every token, and experts that are not selected have weight 0.
value mixture(node& n, const expert_layers& experts, value routing) {
  builder& b = n.b;
  if (n.integer("use_sparse_mixer", 0)) refuse("use_sparse_mixer=1 is not supported");
  value x = n.in(0), scores = n.in(1);
  const auto dims = x.type().dims;
  if ((dims.size() != 2 && dims.size() != 3) || scores.type().rank() != 2)
    invalid("needs tokens of rank 2 or 3 and scores of rank 2, not " + x.type().str() + " and " + scores.type().str());
  dim tokens = dims.size() == 2 ? dims.at(0) : dims.at(0) * dims.at(1);
  const dim count = scores.type().dims.at(1);
  b.need_equal(tokens, scores.type().dims.at(0), "the router has one row for each token");
  if (selects_few(n, tokens, count, experts.first.weights)) {
    value sum = few_tokens(n, b.with_dims(x, {tokens, dims.back()}), scores, experts, routing);
    return b.with_dims(b.to_type(sum, x.type().type), dims);
  }
  value rows = b.broadcast_to(b.with_dims(x, {1, tokens, dims.back()}), {count, tokens, dims.back()});
  value out = through(b, activated_hidden(n, rows, experts), experts.second);
  value weights = b.with_dims(b.permuted(mixing_weights(n, scores, routing), {1, 0}), {count, tokens, 1});
  value sum = b.reduced(reduction_kind::sum, b.binary(fn::mul, b.to_type(out, element_type::f32), weights), {0}, false);
  return b.with_dims(b.to_type(sum, x.type().type), dims);
}

value optional_input(node& n, std::size_t i) { return n.has(i) ? n.in(i) : value{}; }

// inputs: tokens, scores, then weights and bias of three layers.
std::vector<value> experts(node& n) {
  return {mixture(
      n,
      {{n.in(2), optional_input(n, 3)}, {n.in(4), optional_input(n, 5)}, {optional_input(n, 6), optional_input(n, 7)}},
      {})};
}

// Dequantizes weights to [experts, outputs, inputs] from packed integers with scales and zero points per row or per
// block.
value restored(node& n, std::size_t i, std::size_t scales, std::size_t zeros, std::string_view layer) {
  builder& b = n.b;
  std::int64_t bits =
      checked_bits(n.integer(std::string(layer) + "_expert_weight_bits", n.integer("expert_weight_bits", 4)));
  const auto packed = n.dims(i);
  if (packed.size() != 3 || !n.type(i).is_static()) invalid("weights have rank 3, not " + n.type(i).str());
  std::int64_t experts = packed[0].value(), rows = packed[1].value(), depth = packed[2].value() * 8 / bits;
  element_type type = n.type(0).type;
  value elements = packed_elements(n, i, std::string(layer) + "_experts_weights", {experts, rows, depth}, bits);
  std::int64_t block = n.integer("block_size", -1);
  bool blocked = n.rank(scales) == 3 && block > 0;
  std::int64_t blocks = blocked ? (depth + block - 1) / block : 1;
  auto along_row = [&](value v) { return blocked ? repeated_blocks(b, v, 2, block, depth) : v; };
  value zero = b.scalar(type, static_cast<double>(1 << (bits - 1)));
  if (n.has(zeros)) {
    std::string what = std::string(layer) + "_zero_points";
    zero =
        along_row(blocked ? packed_numbers(n, zeros, what, experts * rows, blocks, bits, type, {experts, rows, blocks})
                          : packed_numbers(n, zeros, what, experts, rows, bits, type, {experts, rows, 1}));
  }
  value scale = along_row(b.to_type(b.with_dims(n.in(scales), {experts, rows, blocks}), type));
  return b.binary(fn::mul, b.binary(fn::sub, b.to_type(elements, type), zero), scale);
}

// inputs: tokens, scores, (weights, scales, bias) of three layers, their zero points, routing weights.
std::vector<value> quantized_experts(node& n) {
  if (std::string kind = n.text("quant_type", "int"); kind != "int")
    refuse("quant_type '" + kind + "' is not supported");
  if (n.integer("weights_prepacked", -1) == 1)
    refuse("weights_prepacked=1 is the layout of one device; export with weights_prepacked=0");
  for (std::size_t i = 15; i < n.inputs(); ++i)
    if (n.has(i)) refuse("input " + std::to_string(i) + " (scales of fp4 and fp8 weights) is not supported");
  expert_layers layers{{restored(n, 2, 3, 11, "fc1"), optional_input(n, 4)},
                       {restored(n, 5, 6, 12, "fc2"), optional_input(n, 7)}};
  if (n.has(8)) layers.third = {restored(n, 8, 9, 13, "fc3"), optional_input(n, 10)};
  return {mixture(n, layers, optional_input(n, 14))};
}

constexpr operator_row rows[] = {
    {"MoE", experts, 1, "the selected experts are evaluated for few tokens, else all; no sparse mixer",
     microsoft_domain},
    {"QMoE", quantized_experts, 1, "constant integer weights of 2, 4 or 8 bits; every expert is evaluated",
     microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_expert_operators() { return rows; }

}  // namespace kiln::onnx_import
