// Loss operators that exported classifiers contain.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// input: log probabilities [N, C, d...], target [N, d...], weight [C]. Entries whose target is ignore_index are
// ignored.
value negative_log_likelihood(node& n, value input, value target, value weight) {
  builder& b = n.b;
  element_type type = input.type().type;
  std::string reduction = one_of(n, "reduction", "mean", {"none", "sum", "mean"});
  if (input.type().rank() < 2 || target.type().rank() + 1 != input.type().rank())
    invalid("target " + target.type().str() + " does not fit " + input.type().str());
  target = b.to_type(target, element_type::i64);
  value ignored;
  if (n.has_attribute("ignore_index")) {
    ignored = b.binary(fn::equal, target,
                       b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {n.integer("ignore_index", 0)})));
    target = b.where(ignored, b.scalar(element_type::i64, 0), target);
  }
  auto apart = target.type().dims;
  apart.insert(apart.begin() + 1, 1);
  value picked = b.with_dims(b.add(gather_elements{1}, {input, b.with_dims(target, apart)}), target.type().dims);
  value weights = weight ? b.add(gather{0}, {weight, target}) : b.broadcast_to(b.scalar(type, 1), target.type().dims);
  if (ignored) weights = b.where(ignored, b.scalar(type, 0), weights);
  value loss = b.binary(fn::mul, b.unary(fn::neg, picked), weights);
  // Select instead of multiplying by 0: an infinite log probability times 0 is NaN.
  if (ignored) loss = b.where(ignored, b.scalar(type, 0), loss);
  if (reduction == "none") return loss;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < target.type().rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  value total = b.reduced(reduction_kind::sum, loss, axes, false);
  return reduction == "sum" ? total : b.binary(fn::div, total, b.reduced(reduction_kind::sum, weights, axes, false));
}

std::vector<value> nll_loss(node& n) {
  return {negative_log_likelihood(n, n.in(0), n.in(1), n.has(2) ? n.in(2) : value{})};
}

std::vector<value> softmax_cross_entropy(node& n) {
  if (n.rank(0) < 2) invalid("scores " + n.type(0).str() + " have no class axis");
  value log_probabilities = n.b.add(softmax{1, true}, {n.in(0)});
  return {negative_log_likelihood(n, log_probabilities, n.in(1), n.has(2) ? n.in(2) : value{}), log_probabilities};
}

constexpr operator_row rows[] = {{"NegativeLogLikelihoodLoss", nll_loss, 12},
                                 {"SoftmaxCrossEntropyLoss", softmax_cross_entropy, 12}};

}  // namespace

std::span<const operator_row> loss_operators() { return rows; }

}  // namespace kiln::onnx_import
