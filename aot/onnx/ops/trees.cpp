// TreeEnsembleRegressor and TreeEnsembleClassifier (ai.onnx.ml 1 and 3). All trees are evaluated at once, one step per
// level. The current node of a row in each tree is an index into tables of features, thresholds and children. A leaf is
// its own child.
#include <algorithm>
#include <map>
#include <set>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

struct comparison {
  std::string_view name;
  fn function;
};
constexpr comparison comparisons[] = {
    {"BRANCH_LEQ", fn::less_equal}, {"BRANCH_LT", fn::less},  {"BRANCH_GTE", fn::greater_equal},
    {"BRANCH_GT", fn::greater},     {"BRANCH_EQ", fn::equal},
};

using tree_node = std::pair<std::int64_t, std::int64_t>;  // tree, node

struct forest {
  std::map<tree_node, std::int64_t> index;
  // Indexed by node. `kinds` is an index into comparisons, or -1 for a leaf.
  std::vector<std::int64_t> features, yes, no, kinds, missing_is_yes;
  std::vector<float> thresholds;
  std::vector<std::int64_t> roots;
  std::int64_t depth = 0;
};

std::vector<std::int64_t> list(const node& n, const std::string& name, std::size_t count) {
  auto result = n.integers(name).value_or(std::vector<std::int64_t>{});
  if (result.size() != count)
    invalid("attribute '" + name + "' has " + std::to_string(result.size()) + " entries for " + std::to_string(count) +
            " nodes");
  return result;
}

std::int64_t kind_of(const std::string& mode) {
  if (mode == "LEAF") return -1;
  auto found = std::ranges::find(comparisons, mode, &comparison::name);
  if (found == std::end(comparisons)) refuse("nodes_modes '" + mode + "' is not supported");
  return found - std::begin(comparisons);
}

// Returns the number of levels below the roots. Fails for nodes that are reached twice, so cycles terminate.
std::int64_t depth_of(const forest& f) {
  std::vector<bool> reached(f.features.size());
  std::vector<std::int64_t> level = f.roots;
  std::int64_t depth = 0;
  for (;; ++depth) {
    std::vector<std::int64_t> next;
    for (std::int64_t at : level) {
      auto i = static_cast<std::size_t>(at);
      if (reached[i]) invalid("a node of a tree is reached twice");
      reached[i] = true;
      if (f.kinds[i] < 0) continue;
      next.push_back(f.yes[i]);
      next.push_back(f.no[i]);
    }
    if (next.empty()) return depth;
    level = std::move(next);
  }
}

forest forest_of(node& n, std::int64_t features) {
  for (std::string_view name : {"nodes_values_as_tensor", "nodes_hitrates_as_tensor"})
    if (n.has_attribute(name))
      refuse("attribute '" + std::string(name) + "' is not supported; export the trees in single precision");
  forest f;
  auto trees = n.integers("nodes_treeids").value_or(std::vector<std::int64_t>{});
  std::size_t count = trees.size();
  auto ids = list(n, "nodes_nodeids", count), yes = list(n, "nodes_truenodeids", count),
       no = list(n, "nodes_falsenodeids", count);
  f.features = list(n, "nodes_featureids", count);
  f.missing_is_yes = n.has_attribute("nodes_missing_value_tracks_true")
                         ? list(n, "nodes_missing_value_tracks_true", count)
                         : std::vector<std::int64_t>(count, 0);
  f.thresholds = floats_of(n, "nodes_values");
  auto modes = n.texts("nodes_modes");
  if (count == 0 || f.thresholds.size() != count || modes.size() != count)
    invalid("the lists of nodes differ in length or are empty");
  for (std::size_t i = 0; i < count; ++i)
    if (!f.index.emplace(tree_node{trees[i], ids[i]}, static_cast<std::int64_t>(i)).second)
      invalid("tree " + std::to_string(trees[i]) + " has node " + std::to_string(ids[i]) + " twice");
  std::vector<bool> is_child(count);
  f.yes.resize(count), f.no.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    f.kinds.push_back(kind_of(modes[i]));
    if (f.kinds[i] < 0) {
      f.yes[i] = f.no[i] = static_cast<std::int64_t>(i);
      f.features[i] = 0;
      continue;
    }
    if (f.features[i] < 0 || f.features[i] >= features)
      invalid("a node reads feature " + std::to_string(f.features[i]) + " of " + std::to_string(features));
    for (auto [id, place] : {std::pair(yes[i], &f.yes[i]), std::pair(no[i], &f.no[i])}) {
      auto found = f.index.find({trees[i], id});
      if (found == f.index.end()) invalid("tree " + std::to_string(trees[i]) + " has no node " + std::to_string(id));
      *place = found->second;
      is_child[static_cast<std::size_t>(found->second)] = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!is_child[i]) f.roots.push_back(static_cast<std::int64_t>(i));
  f.depth = depth_of(f);
  return f;
}

// Returns the leaf of each row in each tree, i64[N, trees].
value leaves(node& n, const forest& f, value x) {
  builder& b = n.b;
  auto trees = static_cast<std::int64_t>(f.roots.size());
  auto count = static_cast<std::int64_t>(f.features.size());
  value at = b.broadcast_to(b.integers(f.roots), {x.type().dims[0], trees});
  value features = b.integers(f.features), yes = b.integers(f.yes), no = b.integers(f.no), kinds = b.integers(f.kinds);
  value thresholds = b.constant(literal::of<float>({element_type::f32, {count}}, f.thresholds));
  std::set<std::int64_t> used(f.kinds.begin(), f.kinds.end());
  used.erase(-1);
  bool missing = std::ranges::any_of(f.missing_is_yes, [](std::int64_t m) { return m != 0; });
  auto look_up = [&](value table) { return b.add(gather{0}, {table, at}); };
  for (std::int64_t level = 0; level < f.depth; ++level) {
    value feature = b.add(gather_elements{1}, {x, look_up(features)}), threshold = look_up(thresholds), goes;
    value kind = used.size() > 1 ? look_up(kinds) : value{};
    for (std::int64_t k : used) {
      value holds = b.binary(comparisons[static_cast<std::size_t>(k)].function, feature, threshold);
      goes = goes ? b.where(b.binary(fn::equal, kind, static_cast<double>(k)), holds, goes) : holds;
    }
    if (missing) {
      value tracked = b.binary(fn::equal, look_up(b.integers(f.missing_is_yes)), 1.0);
      goes = b.binary(fn::logical_or, goes, b.binary(fn::logical_and, b.unary(fn::is_nan, feature), tracked));
    }
    at = b.where(goes, look_up(yes), look_up(no));
  }
  return at;
}

// Converts the attributes PREFIX_treeids, _nodeids, _ids and _weights to f32[nodes, targets].
literal weight_table(node& n, const forest& f, const std::string& prefix, std::int64_t targets,
                     const std::map<std::int64_t, std::int64_t>* columns) {
  if (n.has_attribute(prefix + "_weights_as_tensor"))
    refuse("attribute '" + prefix + "_weights_as_tensor' is not supported; export the trees in single precision");
  auto weights = floats_of(n, prefix + "_weights");
  auto trees = list(n, prefix + "_treeids", weights.size()), nodes = list(n, prefix + "_nodeids", weights.size()),
       ids = list(n, prefix + "_ids", weights.size());
  auto count = static_cast<std::int64_t>(f.features.size());
  if (targets < 1 || targets > 1 << 20 || count * targets > std::int64_t{1} << 32)
    invalid(std::to_string(targets) + " targets are out of range");
  std::vector<float> table(static_cast<std::size_t>(count * targets));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto found = f.index.find({trees[i], nodes[i]});
    std::int64_t column = columns ? columns->at(ids[i]) : ids[i];
    if (found == f.index.end() || column < 0 || column >= targets)
      invalid("a weight names node " + std::to_string(nodes[i]) + " and target " + std::to_string(ids[i]));
    table[static_cast<std::size_t>(found->second * targets + column)] += weights[i];
  }
  return literal::of<float>({element_type::f32, {count, targets}}, table);
}

// Aggregates the weights of the leaves of all trees; [N, targets].
value summed(node& n, const forest& f, value at, const literal& weights) {
  builder& b = n.b;
  std::string how = n.text("aggregate_function", "SUM");
  value each = b.add(gather{0}, {b.constant(weights), at});
  if (how == "SUM") return b.reduced(reduction_kind::sum, each, {1}, false);
  if (how == "AVERAGE")
    return b.binary(fn::div, b.reduced(reduction_kind::sum, each, {1}, false), static_cast<double>(f.roots.size()));
  if ((how == "MIN" || how == "MAX") && weights.type().dims[1] == dim(1))
    return b.reduced(how == "MIN" ? reduction_kind::min : reduction_kind::max, each, {1}, false);
  refuse("aggregate_function '" + how + "' of several targets is not supported");
}

value with_base(node& n, value scores) {
  if (n.has_attribute("base_values_as_tensor"))
    refuse("attribute 'base_values_as_tensor' is not supported; export the trees in single precision");
  auto base = floats_of(n, "base_values");
  if (base.empty()) return scores;
  const dim& targets = scores.type().dims[1];
  // With two classes and one score, use the base value of the second class.
  if (targets == dim(1) && base.size() == 2) return n.b.binary(fn::add, scores, static_cast<double>(base[1]));
  return n.b.binary(fn::add, scores, float_table(n, "base_values", {targets}));
}

std::vector<value> regressor(node& n) {
  value x = feature_rows(n);
  forest f = forest_of(n, x.type().dims[1].value());
  value scores = summed(n, f, leaves(n, f, x), weight_table(n, f, "target", n.integer("n_targets", 1), nullptr));
  return {transformed_scores(n, with_base(n, scores))};
}

std::vector<value> classifier(node& n) {
  builder& b = n.b;
  value x = feature_rows(n);
  forest f = forest_of(n, x.type().dims[1].value());
  auto classes = static_cast<std::int64_t>(number_of_labels(n));
  auto ids = n.integers("class_ids").value_or(std::vector<std::int64_t>{});
  auto weights = floats_of(n, "class_weights");
  value at = leaves(n, f, x), index, scores;
  if (classes == 2 && std::set(ids.begin(), ids.end()).size() == 1) {
    // All weights belong to one class. If it is the first class in the list, they are one score for two classes, namely
    // that of the second one. If it is the second class, the first class scores 0, and onnxruntime ignores a single
    // base value.
    bool positive = std::ranges::all_of(weights, [](float w) { return w >= 0; });  // then they are probabilities
    std::map<std::int64_t, std::int64_t> only{{ids[0], 0}};
    bool first = ids[0] == 0;
    value s = summed(n, f, at, weight_table(n, f, "class", 1, &only));
    if (first || floats_of(n, "base_values").size() == 2) s = with_base(n, s);
    index =
        b.to_type(b.with_dims(b.binary(fn::greater, s, positive ? 0.5 : 0.0), {x.type().dims[0]}), element_type::i64);
    scores = first ? two_class_scores(n, s, !positive)
                   : transformed_scores(
                         n, b.add(concat{1}, {b.broadcast_to(b.scalar(element_type::f32, 0), s.type().dims), s}));
  } else {
    scores = with_base(n, summed(n, f, at, weight_table(n, f, "class", classes, nullptr)));
    index = b.add(arg_reduce{true, 1, false, false}, {scores});
    scores = transformed_scores(n, scores);
  }
  return {n.wants(0) ? class_labels(n, index) : value{}, scores};
}

constexpr operator_row rows[] = {
    {"TreeEnsembleRegressor", regressor, 1, "single precision", ml_domain},
    {"TreeEnsembleClassifier", classifier, 1, "single precision, integer labels", ml_domain},
};

}  // namespace

std::span<const operator_row> tree_operators() { return rows; }

}  // namespace kiln::onnx_import
