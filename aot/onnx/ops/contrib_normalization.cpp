// Normalizations from onnxruntime's domain, which its transformer optimizer and LLM exporters emit, and the RMS
// normalization that became standard.
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/hyper_connections.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Normalizes along the last axes and provides the optional outputs. Narrow inputs are computed in f32.
struct row_normalization {
  row_normalization(node& n, value x, std::vector<std::int64_t> axes, double epsilon, bool centered)
      : b(n.b),
        type(x.type().type),
        x(b.to_type(x, compute_type(type))),
        axes(std::move(axes)),
        epsilon(epsilon),
        centered(centered) {}

  value scaled(value scale, value bias) const {
    value result = b.binary(fn::mul, b.add(normalize{axes, epsilon, centered}, {x}), b.to_type(scale, x.type().type));
    if (bias) result = b.binary(fn::add, result, b.to_type(bias, x.type().type));
    return b.to_type(result, type);
  }
  value mean() const { return b.reduced(reduction_kind::mean, x, axes, true); }
  value inverse_deviation() const {
    value about = centered ? b.binary(fn::sub, x, mean()) : x;
    return b.unary(
        fn::rsqrt,
        b.binary(fn::add, b.reduced(reduction_kind::mean, b.binary(fn::mul, about, about), axes, true), epsilon));
  }

  builder& b;
  element_type type;
  value x;  // in the compute type
  std::vector<std::int64_t> axes;
  double epsilon;
  bool centered;
};

std::vector<std::int64_t> last_axis(const shape& type) {
  if (type.rank() == 0) invalid("a scalar has no axis to normalize along");
  return {static_cast<std::int64_t>(type.rank()) - 1};
}

// (X, scale) → (Y, 1 / RMS). The standard's RMSNormalization (opset 23) has only the first output.
std::vector<value> rms_normalization(node& n) {
  std::size_t rank = n.rank(0);
  if (rank == 0) invalid("a scalar has no axis to normalize along");
  std::vector<std::int64_t> axes(rank - static_cast<std::size_t>(n.axis("axis", -1, rank)));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(rank - axes.size()));
  row_normalization rows(n, n.in(0), axes, n.real("epsilon", 1e-5), false);
  value y = rows.scaled(n.in(1), {});
  return n.wants(1) ? std::vector<value>{y, rows.inverse_deviation()} : std::vector<value>{y};
}

// RMS normalization of each of the branches [..., branches, H], which may be one axis. The scale has the elements of
// all branches or of one.
std::vector<value> branchwise_rms_norm(node& n) {
  builder& b = n.b;
  const std::int64_t branches = n.integer("num_branches", 0);
  const auto dims = n.dims(0);
  if (dims.empty() || branches < 0) invalid("X is " + n.type(0).str());
  auto apart = dims;
  if (branches > 0) {
    if (!dims.back().is_static() || dims.back().value() % branches)
      invalid(std::to_string(branches) + " branches do not divide " + n.type(0).str());
    apart.back() = branches;
    apart.emplace_back(dims.back().value() / branches);
  }
  if (apart.size() < 2) invalid("X " + n.type(0).str() + " has no axis of branches");
  const element_type wide = compute_type(n.type(0).type);
  value x = b.with_dims(b.to_type(n.in(0), wide), apart);
  x = b.add(normalize{last_axis(x.type()), n.real("epsilon", 1e-5), false}, {x});
  if (n.has(1)) {
    value scale = b.to_type(n.in(1), wide);
    if (scale.type().elements() != apart.back()) scale = b.with_dims(scale, {*(apart.end() - 2), apart.back()});
    x = b.binary(fn::mul, x, scale);
  }
  return {b.with_dims(b.to_type(x, n.type(0).type), dims)};
}

// The skip input may lack the batch axis, or may have a batch of 1, and is then broadcast.
value sum_of_skips(node& n, std::optional<std::size_t> bias) {
  builder& b = n.b;
  element_type wide = compute_type(n.type(0).type);
  value sum = b.binary(fn::add, b.to_type(n.in(0), wide), b.to_type(n.in(1), wide));
  if (sum.type().dims != n.dims(0)) invalid("skip " + n.type(1).str() + " is larger than the input " + n.type(0).str());
  if (bias && n.has(*bias)) sum = b.binary(fn::add, sum, b.to_type(n.in(*bias), wide));
  return sum;
}

// outputs: normalized, mean, 1 / standard deviation, the sum that was normalized.
std::vector<value> skip_normalization(node& n, bool centered, std::optional<std::size_t> beta, std::size_t bias) {
  value sum = sum_of_skips(n, bias);
  // A sum that is stored is rounded, and what is normalized is what the next node adds to. Then one tensor serves both.
  if (n.wants(3)) sum = n.b.to_type(sum, n.type(0).type);
  row_normalization rows(n, sum, last_axis(sum.type()), n.real("epsilon", 1e-12), centered);
  element_type type = n.type(0).type;
  std::vector<value> results{n.b.to_type(rows.scaled(n.in(2), beta && n.has(*beta) ? n.in(*beta) : value{}), type)};
  if (n.outputs() > 1) results.push_back(n.wants(1) ? rows.mean() : value{});
  if (n.outputs() > 2) results.push_back(n.wants(2) ? rows.inverse_deviation() : value{});
  if (n.outputs() > 3) results.push_back(n.b.to_type(sum, type));
  return results;
}

std::vector<value> skip_layer_normalization(node& n) { return skip_normalization(n, true, 3, 4); }
std::vector<value> skip_simplified_layer_normalization(node& n) {
  return skip_normalization(n, false, std::nullopt, 3);
}

// inputs: X [..., H * C], scale [C], gate like X. Each group of C elements is normalized by itself.
std::vector<value> gated_rms_norm(node& n) {
  builder& b = n.b;
  const std::string activation = one_of(n, "activation", "silu", {"silu", "swish", "sigmoid"});
  const auto dims = n.dims(0);
  if (dims.empty() || n.rank(1) != 1 || n.dims(2) != dims)
    invalid("X " + n.type(0).str() + ", scale " + n.type(1).str() + " and gate " + n.type(2).str() + " do not fit");
  dim groups;
  const dim width = n.dims(1)[0];
  if (!divides_exactly(dims.back(), width, groups))
    invalid("the last axis of X " + n.type(0).str() + " is no multiple of scale " + n.type(1).str());
  std::vector<dim> grouped = dims;
  grouped.back() = groups, grouped.push_back(width);
  value x = b.to_type(b.with_dims(n.in(0), grouped), element_type::f32);
  row_normalization rows(n, x, last_axis(x.type()), n.real("epsilon", 1e-5), false);
  value gate = b.to_type(n.in(2), element_type::f32), weight = b.unary(fn::sigmoid, gate);
  if (activation != "sigmoid") weight = b.binary(fn::mul, gate, weight);
  value y = b.with_dims(rows.scaled(b.to_type(n.in(1), element_type::f32), {}), dims);
  return {b.to_type(b.binary(fn::mul, y, weight), n.type(0).type)};
}

// Returns the number of ones in each row of the mask, i32[batch]; zeros if the node has no mask.
value tokens_in_masks(node& n, std::size_t mask, const dim& batch) {
  builder& b = n.b;
  if (!n.has(mask)) return b.broadcast_to(b.scalar(element_type::i32, 0), {batch});
  value kept = b.to_type(b.binary(fn::equal, n.in(mask), 1.0), element_type::i32);
  return b.reduced(reduction_kind::sum, kept, {1}, false);
}

// inputs: ids, segments, word embeddings, position embeddings, segment embeddings, gamma, beta, mask, position ids.
// outputs: normalized, number of tokens in each mask, the sum.
std::vector<value> embed_layer_normalization(node& n) {
  builder& b = n.b;
  const auto ids = n.dims(0);
  if (ids.size() != 2) invalid("input 0 (ids) must be [batch, sequence], not " + n.type(0).str());
  value sum = b.add(gather{0}, {n.in(2), n.in(0)});
  value positions = n.has(8) ? b.add(gather{0}, {n.in(3), n.in(8)})
                             : b.add(gather{0}, {n.in(3), b.iota_like(element_type::i64, {ids[1]}, 0)});
  sum = b.binary(fn::add, sum, positions);
  if (n.has(1)) sum = b.binary(fn::add, sum, b.add(gather{0}, {n.in(4), n.in(1)}));
  row_normalization rows(n, sum, last_axis(sum.type()), n.real("epsilon", 1e-12), true);
  std::vector<value> results{rows.scaled(n.in(5), n.in(6))};
  if (n.outputs() > 1) results.push_back(tokens_in_masks(n, 7, ids[0]));
  if (n.outputs() > 2) results.push_back(sum);
  return results;
}

// Group normalization of x (f32 or f64), followed by scale and bias per channel and the activation. The attribute
// `channels_last` gives the position of the channel axis.
value normalized_groups(node& n, value x, value scale, value bias) {
  builder& b = n.b;
  const auto dims = x.type().dims;
  bool last = n.integer("channels_last", 1) != 0;
  std::size_t channel = last ? dims.size() - 1 : 1;
  std::int64_t groups = n.integer("groups", 0), activation = n.integer("activation", 0);
  if (dims.size() < 3 || groups < 1 || !dims.at(channel).is_static() || dims.at(channel).value() % groups != 0)
    invalid("groups " + std::to_string(groups) + " does not divide the channels of " + x.type().str());
  if (activation != 0 && activation != 1)
    invalid("activation is " + std::to_string(activation) + ", not 0 or 1 (SiLU)");
  auto grouped = dims;
  grouped[channel] = dims.at(channel).value() / groups;
  grouped.insert(grouped.begin() + static_cast<std::ptrdiff_t>(channel), groups);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i < grouped.size(); ++i)
    if (i != channel) axes.push_back(static_cast<std::int64_t>(i));
  value y = b.with_dims(b.add(normalize{axes, n.real("epsilon", 1e-5), true}, {b.with_dims(x, grouped)}), dims);
  auto of_channels = [&](value v) {
    return b.along_axis(b.to_type(v, x.type().type), static_cast<std::int64_t>(channel), dims.size());
  };
  y = b.binary(fn::add, b.binary(fn::mul, y, of_channels(scale)), of_channels(bias));
  return activation ? b.binary(fn::mul, y, b.unary(fn::sigmoid, y)) : y;
}

// inputs: X, gamma, beta.
std::vector<value> group_norm(node& n) {
  element_type type = n.type(0).type;
  value x = n.b.to_type(n.in(0), compute_type(type));
  return {n.b.to_type(normalized_groups(n, x, n.in(1), n.in(2)), type)};
}

// inputs: X, gamma, beta, skip ([N, C] or like X, possibly with one pixel), bias [C]. outputs: Y, the sum.
std::vector<value> skip_group_norm(node& n) {
  builder& b = n.b;
  element_type type = n.type(0).type, wide = compute_type(type);
  const auto dims = n.dims(0);
  bool last = n.integer("channels_last", 1) != 0;
  value skip = b.to_type(n.in(3), wide);
  if (skip.type().rank() == 2) {
    std::vector<dim> lifted(dims.size(), 1);
    lifted[0] = skip.type().dims.at(0);
    lifted[last ? dims.size() - 1 : 1] = skip.type().dims.at(1);
    skip = b.with_dims(skip, lifted);
  }
  value sum = b.binary(fn::add, b.to_type(n.in(0), wide), skip);
  if (n.has(4))
    sum = b.binary(
        fn::add, sum,
        b.along_axis(b.to_type(n.in(4), wide), last ? static_cast<std::int64_t>(dims.size()) - 1 : 1, dims.size()));
  if (sum.type().dims != dims) invalid("skip " + n.type(3).str() + " is larger than the input " + n.type(0).str());
  return {b.to_type(normalized_groups(n, sum, n.in(1), n.in(2)), type), b.to_type(sum, type)};
}

// EmbedLayerNormalization with 8-bit tables, gamma and beta. Inputs 8 to 12 are their scales, inputs 13 to 17 their
// zero points; the other inputs are those of EmbedLayerNormalization. outputs: normalized embeddings, number of tokens
// in each mask.
std::vector<value> quantized_embed_layer_normalization(node& n) {
  builder& b = n.b;
  const auto ids = n.dims(0);
  if (ids.size() != 2) invalid("input 0 (ids) must be [batch, sequence], not " + n.type(0).str());
  auto real = [&](std::size_t table, value rows) {
    return dequantized(b, rows, n.in(table + 6), n.has(table + 11) ? n.in(table + 11) : value{});
  };
  auto looked_up = [&](std::size_t table, value index) { return real(table, b.add(gather{0}, {n.in(table), index})); };
  value sum = b.binary(fn::add, looked_up(2, n.in(0)), looked_up(3, b.iota_like(element_type::i64, {ids[1]}, 0)));
  if (n.has(1)) sum = b.binary(fn::add, sum, looked_up(4, n.in(1)));
  row_normalization rows(n, sum, last_axis(sum.type()), n.real("epsilon", 1e-12), true);
  std::vector<value> results{rows.scaled(real(5, n.in(5)), real(6, n.in(6)))};
  if (n.outputs() > 1) results.push_back(tokens_in_masks(n, 7, ids[0]));
  return results;
}

constexpr operator_row rows[] = {
    {"RMSNormalization", rms_normalization, 23},
    {"SimplifiedLayerNormalization", rms_normalization, 1, "onnxruntime's"},
    {"SkipLayerNormalization", skip_layer_normalization, 1, "", microsoft_domain},
    {"SkipSimplifiedLayerNormalization", skip_simplified_layer_normalization, 1, "", microsoft_domain},
    {"EmbedLayerNormalization", embed_layer_normalization, 1, "", microsoft_domain},
    {"QEmbedLayerNormalization", quantized_embed_layer_normalization, 1, "", microsoft_domain},
    {"BranchwiseRMSNorm", branchwise_rms_norm, 1, "", microsoft_domain},
    {"GatedRMSNorm", gated_rms_norm, 1, "", microsoft_domain},
    {"EngramGate", engram_gate, 1, "", microsoft_domain},
    {"HyperConnectionLowRankMix", hyper_connection_low_rank_mix, 1, "", microsoft_domain},
    {"HyperConnectionPostMix", hyper_connection_post_mix, 1, "", microsoft_domain},
    {"HyperConnectionPreMix", hyper_connection_pre_mix, 1, "", microsoft_domain},
    {"MoEGroupRouter", moe_group_router, 1, "", microsoft_domain},
    {"NGramHashMapping", ngram_hash_mapping, 1, "no segment_ids, no reset_on_eos", microsoft_domain},
    {"GroupNorm", group_norm, 1, "", microsoft_domain},
    {"SkipGroupNorm", skip_group_norm, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_normalization_operators() { return rows; }

}  // namespace kiln::onnx_import
