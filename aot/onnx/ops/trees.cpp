// The operators of decision trees: TreeEnsembleRegressor and TreeEnsembleClassifier (ai.onnx.ml 1 and 3), and
// TreeEnsemble (5).
#include <algorithm>
#include <map>
#include <set>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/forest.hpp"
#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<std::int64_t> list(const node& n, const std::string& name, std::size_t count) {
  auto result = n.integers(name).value_or(std::vector<std::int64_t>{});
  if (result.size() != count)
    invalid("attribute '" + name + "' has " + std::to_string(result.size()) + " entries for " + std::to_string(count) +
            " weights");
  return result;
}

void check_targets(std::int64_t targets, std::int64_t count) {
  if (targets < 1 || targets > 1 << 20 || count * targets > std::int64_t{1} << 32)
    invalid(std::to_string(targets) + " targets are out of range");
}

// Converts the attributes PREFIX_treeids, _nodeids, _ids and _weights to [nodes, targets]. Weights of one leaf for one
// target are added. As in onnxruntime, the first one counts alone if there is a single target: skl2onnx repeats the
// number of a leaf for every class (decision_leaf, decision_path).
literal weight_table(node& n, const indexed_forest& f, const std::string& prefix, std::int64_t targets,
                     const std::map<std::int64_t, std::int64_t>* columns) {
  auto weights = numbers_of(n, prefix + "_weights");
  auto trees = list(n, prefix + "_treeids", weights.size()), nodes = list(n, prefix + "_nodeids", weights.size()),
       ids = list(n, prefix + "_ids", weights.size());
  auto count = static_cast<std::int64_t>(f.trees.size());
  check_targets(targets, count);
  const double absent = absent_weight(f.trees, n.text("aggregate_function", "SUM"));
  std::vector<double> table(static_cast<std::size_t>(count * targets), absent);
  std::set<std::int64_t> given;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto found = f.index.find({trees[i], nodes[i]});
    std::int64_t column = columns ? columns->at(ids[i]) : ids[i];
    if (found == f.index.end() || column < 0 || column >= targets)
      invalid("a weight names node " + std::to_string(nodes[i]) + " and target " + std::to_string(ids[i]) +
              ", which do not both exist");
    double& entry = table[static_cast<std::size_t>(found->second * targets + column)];
    const bool fresh = given.insert(found->second * targets + column).second;
    if (fresh) entry = weights[i];
    else if (targets > 1 || columns) entry += weights[i];
  }
  return literal::from_doubles({f.trees.type, {count, targets}}, table);
}

value summed(node& n, const indexed_forest& f, value leaves, const literal& weights) {
  return aggregated(n.b, f.trees, leaves, weights, n.text("aggregate_function", "SUM"));
}

value with_base(node& n, value scores) {
  auto base = numbers_of(n, "base_values");
  if (base.empty()) return scores;
  const dim& targets = scores.type().dims.at(1);
  // With two classes and one score, use the base value of the second class.
  if (targets == dim(1) && base.size() == 2) return n.b.binary(fn::add, scores, base[1]);
  if (!(targets == dim(static_cast<std::int64_t>(base.size()))))
    invalid("attribute 'base_values' has " + std::to_string(base.size()) + " numbers for " + targets.str() +
            " targets");
  return n.b.binary(fn::add, scores, n.b.constant(literal::from_doubles({scores.type().type, {targets}}, base)));
}

std::vector<value> regressor(node& n) {
  value x = feature_rows(n, true);
  indexed_forest f = forest_of_lists(n, x.type());
  value scores =
      summed(n, f, leaves_of(n.b, f.trees, x), weight_table(n, f, "target", n.integer("n_targets", 1), nullptr));
  return {transformed_scores(n, n.b.to_type(with_base(n, scores), element_type::f32))};
}

std::vector<value> classifier(node& n) {
  builder& b = n.b;
  value x = feature_rows(n, true);
  indexed_forest f = forest_of_lists(n, x.type());
  auto classes = static_cast<std::int64_t>(number_of_labels(n));
  auto ids = n.integers("class_ids").value_or(std::vector<std::int64_t>{});
  auto weights = numbers_of(n, "class_weights");
  value at = leaves_of(b, f.trees, x), index, scores;
  if (classes == 2 && std::set(ids.begin(), ids.end()).size() == 1) {
    // All weights belong to one class. If it is the first class in the list, they are one score for two classes, namely
    // that of the second one. If it is the second class, the first class scores 0, and onnxruntime ignores a single
    // base value.
    // If all weights are nonnegative, the scores are probabilities.
    bool positive = std::ranges::all_of(weights, [](double w) { return w >= 0; });
    std::map<std::int64_t, std::int64_t> only{{ids[0], 0}};
    bool first = ids[0] == 0;
    value s = summed(n, f, at, weight_table(n, f, "class", 1, &only));
    if (first || numbers_of(n, "base_values").size() == 2) s = with_base(n, s);
    index = b.to_type(b.with_dims(b.binary(fn::greater, s, positive ? 0.5 : 0.0), {x.type().dims.at(0)}),
                      element_type::i64);
    s = b.to_type(s, element_type::f32);
    scores = first ? two_class_scores(n, s, !positive)
                   : transformed_scores(
                         n, b.add(concat{1}, {b.broadcast_to(b.scalar(element_type::f32, 0), s.type().dims), s}));
  } else {
    scores = with_base(n, summed(n, f, at, weight_table(n, f, "class", classes, nullptr)));
    index = b.add(arg_reduce{true, 1, false, false}, {scores});
    scores = transformed_scores(n, b.to_type(scores, element_type::f32));
  }
  return {n.wants(0) ? class_labels(n, index) : value{}, scores};
}

constexpr std::string_view aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::string_view transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

// TreeEnsemble (ai.onnx.ml 5): leaves are numbered separately from nodes, and modes are integers.
std::vector<value> ensemble(node& n) {
  value x = feature_rows(n, true);
  forest_with_leaves f = forest_of_tensors(n, x.type());
  auto weights = tensor_attribute(n, "leaf_weights");
  auto targets = list(n, "leaf_targetids", weights ? static_cast<std::size_t>(weights->type().element_count()) : 0);
  std::int64_t count = static_cast<std::int64_t>(f.trees.size()), columns = n.integer("n_targets", 1);
  check_targets(columns, count);
  auto how = n.integer("aggregate_function", 1), transform = n.integer("post_transform", 0);
  if (how < 0 || how > 3) invalid("aggregate_function is " + std::to_string(how) + ", not 0 to 3");
  if (transform < 0 || transform > 4) invalid("post_transform is " + std::to_string(transform) + ", not 0 to 4");
  const std::string aggregate(aggregates[static_cast<std::size_t>(how)]);
  std::vector<double> table(static_cast<std::size_t>(count * columns), absent_weight(f.trees, aggregate));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= columns)
      invalid("leaf_targetids names target " + std::to_string(targets[i]) + ", which does not exist");
    auto row = static_cast<std::size_t>(f.leaves_from) + i;
    table[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(targets[i])] =
        weights->at(static_cast<std::int64_t>(i));
  }
  value scores = aggregated(n.b, f.trees, leaves_of(n.b, f.trees, x),
                            literal::from_doubles({f.trees.type, {count, columns}}, table), aggregate);
  scores = transformed_scores(n, scores, transforms[static_cast<std::size_t>(transform)]);
  return {n.b.to_type(scores, n.type(0).type)};
}

constexpr operator_row rows[] = {
    {"TreeEnsembleRegressor", regressor, 1, "", ml_domain},
    {"TreeEnsembleClassifier", classifier, 1, "", ml_domain},
    {"TreeEnsemble", ensemble, 5, "", ml_domain},
};

}  // namespace

std::span<const operator_row> tree_operators() { return rows; }

}  // namespace kiln::onnx_import
