// Decision trees of the ai.onnx.ml domain. All trees are evaluated at once, one step per level. The current node of a
// row in each tree is an index into tables of features, thresholds and children. A leaf is its own child.
#pragma once

#include <map>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// How an inner node compares its feature with its threshold; a member node asks whether the feature is in a set.
enum class branch : std::int8_t { leaf = -1, less_equal, less, greater_equal, greater, equal, not_equal, member };

struct forest {
  // Indexed by node.
  std::vector<branch> kinds;
  std::vector<std::int64_t> features, yes, no, missing_is_yes;
  std::vector<double> thresholds;
  std::map<std::int64_t, std::vector<double>> members;  // the sets of member nodes
  std::vector<std::int64_t> roots;
  element_type type = element_type::f32;  // of features and thresholds: f32 or f64
  std::int64_t depth = 0;                 // number of levels below the roots

  std::size_t size() const { return kinds.size(); }
};

// The forest of TreeEnsembleRegressor and TreeEnsembleClassifier, and where it keeps the nodes (tree, node).
using tree_node = std::pair<std::int64_t, std::int64_t>;
struct indexed_forest {
  forest trees;
  std::map<tree_node, std::int64_t> index;
};
indexed_forest forest_of_lists(node& n, const shape& x);

// The forest of TreeEnsemble (ai.onnx.ml 5). Leaf i is node `leaves_from` + i.
struct forest_with_leaves {
  forest trees;
  std::int64_t leaves_from = 0;
};
forest_with_leaves forest_of_tensors(node& n, const shape& x);

// Returns the leaf of each row of x [N, features] in each tree, i64[N, trees].
value leaves_of(builder& b, const forest& f, value x);

// The weight of a leaf without a weight for a target. It changes no aggregate.
double absent_weight(const forest& f, std::string_view how);

// Aggregates the weights [nodes, targets] of the leaves of all trees: SUM, AVERAGE, MIN or MAX. Returns [N, targets].
// Where no tree has a weight for a target, the result is 0.
value aggregated(builder& b, const forest& f, value leaves, const literal& weights, const std::string& how);

}  // namespace kiln::onnx_import
