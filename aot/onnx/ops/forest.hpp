// Decision trees of the ai.onnx.ml domain. All trees are evaluated at once, one step per level. The current node of a
// row in each tree is an index into tables of features, thresholds and children. A leaf is its own child.
#pragma once

#include <map>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// How an inner node compares its feature with its threshold. A `member` node tests whether the feature is in a set.
enum class branch : std::int8_t { leaf = -1, less_equal, less, greater_equal, greater, equal, not_equal, member };

struct forest {
  // Lists are indexed by node.
  std::vector<branch> kinds;
  std::vector<std::int64_t> features, yes, no, missing_is_yes;
  std::vector<double> thresholds;
  // The sets of `member` nodes, keyed by node.
  std::map<std::int64_t, std::vector<double>> members;
  std::vector<std::int64_t> roots;
  element_type type = element_type::f32;  // of features and thresholds: f32 or f64
  std::int64_t depth = 0;                 // number of levels below the roots

  std::size_t size() const { return kinds.size(); }
};

// Returns the forest of TreeEnsembleRegressor or TreeEnsembleClassifier, and the index of each (tree, node).
using tree_node = std::pair<std::int64_t, std::int64_t>;
struct indexed_forest {
  forest trees;
  std::map<tree_node, std::int64_t> index;
};
indexed_forest forest_of_lists(node& n, const shape& x);

// The forest of TreeEnsemble (ai.onnx.ml 5). Leaf i is stored as node `leaves_from` + i.
struct forest_with_leaves {
  forest trees;
  std::int64_t leaves_from = 0;
};
forest_with_leaves forest_of_tensors(node& n, const shape& x);

// Returns the leaf of each row of x [N, features] in each tree, i64[N, trees].
value leaves_of(builder& b, const forest& f, value x);

// Returns the weight that stands for "this leaf has no weight for this target": the neutral element of the aggregate.
double absent_weight(const forest& f, std::string_view how);

// Aggregates the weights [nodes, targets] of the reached leaves over all trees with SUM, AVERAGE, MIN or MAX. Returns
// [N, targets]; 0 where no tree has a weight for the target.
value aggregated(builder& b, const forest& f, value leaves, const literal& weights, const std::string& how);

}  // namespace kiln::onnx_import
