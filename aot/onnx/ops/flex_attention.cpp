// FlexAttention of the preview domain: attention with graphs that change its scores and its weights.
#include <cmath>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/attention_parts.hpp"

namespace kiln::onnx_import {
namespace {

// Applies a modifier graph to x by importing its nodes into the surrounding graph.
value modified(node& n, std::string_view name, value x) {
  if (!n.has_attribute(name)) return x;
  auto& graph = n.graph(name);
  if (graph.input_size() != 1 || graph.output_size() != 1)
    invalid(std::string(name) + " has " + std::to_string(graph.input_size()) + " inputs and " +
            std::to_string(graph.output_size()) + " outputs, not one of each");
  scope inside(n.owner.state(), n.b, &n.owner);
  inside.define(graph.input(0).name(), x);
  inside.run(graph);
  value result = inside.outputs(graph)[0];
  if (result.type() != x.type())
    invalid(std::string(name) + " gives " + result.type().str() + ", not the type of its input, " + x.type().str());
  return result;
}

// inputs: Q [B, N, S, H], K [B, G, T, H], V [B, G, T, V].
std::vector<value> flex_attention(node& n) {
  builder& b = n.b;
  attention_problem p{n.in(0), n.in(1), n.in(2)};
  check_ranks(p);
  const dim depth = p.query.type().dims.at(3);
  if (!depth.is_static() && !n.has_attribute("scale")) refuse("the depth of a head must be known");
  p.scale = n.has_attribute("scale") ? n.real("scale", 1) : 1 / std::sqrt(static_cast<double>(depth.value()));
  if (!n.has_attribute("score_mod") && !n.has_attribute("prob_mod")) return {attend(b, p)};
  element_type precision = compute_type(p.query.type().type);
  if (n.has_attribute("softmax_precision"))
    precision = element_type_of(n.integer("softmax_precision", 1), "attribute 'softmax_precision'");
  if (!is_float(precision)) invalid("softmax_precision is no floating type");
  value scores = modified(n, "score_mod", b.to_type(scores_of(b, p), precision));
  value weights = modified(n, "prob_mod", b.add(softmax{3, false}, {scores}));
  return {weighted_sums(b, p, weights)};
}

constexpr operator_row rows[] = {{"FlexAttention", flex_attention, 1, "", "ai.onnx.preview"}};

}  // namespace

std::span<const operator_row> flex_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
