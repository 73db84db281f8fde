#include "aot/onnx/ops/forest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

struct comparison {
  // Name of the comparison in the attribute nodes_modes.
  std::string_view name;
  branch kind;
  fn function;
};
// Indexed by TreeEnsemble's enumeration of modes. not_equal is stored as the negation of `equal`.
constexpr comparison comparisons[] = {
    {"BRANCH_LEQ", branch::less_equal, fn::less_equal},
    {"BRANCH_LT", branch::less, fn::less},
    {"BRANCH_GTE", branch::greater_equal, fn::greater_equal},
    {"BRANCH_GT", branch::greater, fn::greater},
    {"BRANCH_EQ", branch::equal, fn::equal},
    {"BRANCH_NEQ", branch::not_equal, fn::equal},
};

std::vector<std::int64_t> list(const node& n, const std::string& name, std::size_t count) {
  auto result = n.integers(name).value_or(std::vector<std::int64_t>{});
  if (result.size() != count)
    invalid("attribute '" + name + "' has " + std::to_string(result.size()) + " entries for " + std::to_string(count) +
            " nodes");
  return result;
}

branch kind_of(const std::string& mode) {
  if (mode == "LEAF") return branch::leaf;
  auto found = std::ranges::find(comparisons, mode, &comparison::name);
  if (found == std::end(comparisons)) refuse("nodes_modes '" + mode + "' is not supported");
  return found->kind;
}

// Returns the length of the longest way from a root to a leaf; 0 for leaves. A node may have several parents:
// LightGBM's converter writes a set of categories as a chain of comparisons that lead to one node. Refuses cycles, and
// fewer than `least` nodes.
std::int64_t depth_of(const forest& f, std::size_t least) {
  const auto children = [&](std::int64_t at) -> std::array<std::int64_t, 2> {
    return {f.yes[static_cast<std::size_t>(at)], f.no[static_cast<std::size_t>(at)]};
  };
  const auto is_leaf = [&](std::int64_t at) { return f.kinds[static_cast<std::size_t>(at)] == branch::leaf; };
  std::vector<std::int64_t> parents(f.size()), depth(f.size()), reached;
  std::vector<bool> seen(f.size());
  const auto reach = [&](std::int64_t at) {
    if (!seen[static_cast<std::size_t>(at)]) reached.push_back(at);
    seen[static_cast<std::size_t>(at)] = true;
  };
  std::ranges::for_each(f.roots, reach);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (is_leaf(reached[i])) continue;
    for (std::int64_t child : children(reached[i])) {
      ++parents[static_cast<std::size_t>(child)];
      reach(child);
    }
  }
  // A node follows when all of its parents are done.
  std::vector<std::int64_t> done;
  for (std::int64_t at : reached)
    if (parents[static_cast<std::size_t>(at)] == 0) done.push_back(at);
  std::int64_t deepest = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    const std::int64_t below = depth[static_cast<std::size_t>(done[i])] + 1;
    if (is_leaf(done[i])) continue;
    for (std::int64_t child : children(done[i])) {
      const auto c = static_cast<std::size_t>(child);
      depth[c] = std::max(depth[c], below);
      deepest = std::max(deepest, depth[c]);
      if (--parents[c] == 0) done.push_back(child);
    }
  }
  if (done.size() < std::max(reached.size(), least)) invalid("a node of a tree is below itself");
  return deepest;
}

void check_features(const forest& f, const shape& x) {
  for (std::int64_t feature : f.features)
    if (feature < 0 || feature >= x.dims.at(1).value())
      invalid("a node reads feature " + std::to_string(feature) + " of " + x.dims.at(1).str());
}

element_type type_for(const shape& x, const std::optional<literal>& thresholds) {
  bool wide = x.type == element_type::f64 || (thresholds && thresholds->type().type == element_type::f64);
  return wide ? element_type::f64 : element_type::f32;
}

// Returns the set of each of TreeEnsemble's member nodes. The attribute holds all sets in one list, each terminated by
// NaN.
std::map<std::int64_t, std::vector<double>> members_of(node& n, const std::vector<branch>& kinds) {
  std::map<std::int64_t, std::vector<double>> result;
  auto all = tensor_attribute(n, "membership_values");
  std::int64_t at = 0, count = all ? all->type().element_count() : 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != branch::member) continue;
    auto& set = result[static_cast<std::int64_t>(i)];
    while (at < count && !std::isnan(all->at(at))) set.push_back(all->at(at++));
    if (at == count) invalid("membership_values has too few sets");
    ++at;
  }
  return result;
}

}  // namespace

indexed_forest forest_of_lists(node& n, const shape& x) {
  indexed_forest result;
  forest& f = result.trees;
  auto trees = n.integers("nodes_treeids").value_or(std::vector<std::int64_t>{});
  std::size_t count = trees.size();
  auto ids = list(n, "nodes_nodeids", count), yes = list(n, "nodes_truenodeids", count),
       no = list(n, "nodes_falsenodeids", count);
  f.features = list(n, "nodes_featureids", count);
  f.missing_is_yes = n.has_attribute("nodes_missing_value_tracks_true")
                         ? list(n, "nodes_missing_value_tracks_true", count)
                         : std::vector<std::int64_t>(count, 0);
  f.type = type_for(x, tensor_attribute(n, "nodes_values_as_tensor"));
  f.thresholds = numbers_of(n, "nodes_values");
  auto modes = n.texts("nodes_modes");
  if (count == 0 || f.thresholds.size() != count || modes.size() != count)
    invalid("the lists of nodes differ in length or are empty");
  for (std::size_t i = 0; i < count; ++i)
    if (!result.index.emplace(tree_node{trees[i], ids[i]}, static_cast<std::int64_t>(i)).second)
      invalid("tree " + std::to_string(trees[i]) + " has node " + std::to_string(ids[i]) + " twice");
  std::vector<bool> is_child(count);
  f.yes.resize(count), f.no.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    f.kinds.push_back(kind_of(modes[i]));
    if (f.kinds[i] == branch::leaf) {
      f.yes[i] = f.no[i] = static_cast<std::int64_t>(i);
      f.features[i] = 0;
      continue;
    }
    for (auto [id, place] : {std::pair(yes[i], &f.yes[i]), std::pair(no[i], &f.no[i])}) {
      auto found = result.index.find({trees[i], id});
      if (found == result.index.end())
        invalid("tree " + std::to_string(trees[i]) + " has no node " + std::to_string(id));
      *place = found->second;
      is_child[static_cast<std::size_t>(found->second)] = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!is_child[i]) f.roots.push_back(static_cast<std::int64_t>(i));
  check_features(f, x);
  f.depth = depth_of(f, count);  // a node that no root leads to is in a cycle
  return result;
}

forest_with_leaves forest_of_tensors(node& n, const shape& x) {
  forest_with_leaves result;
  forest& f = result.trees;
  auto splits = tensor_attribute(n, "nodes_splits"), modes = tensor_attribute(n, "nodes_modes");
  f.features = n.integers("nodes_featureids").value_or(std::vector<std::int64_t>{});
  std::size_t count = f.features.size(),
              leaves = n.integers("leaf_targetids").value_or(std::vector<std::int64_t>{}).size();
  if (!splits || !modes || splits->type().element_count() != static_cast<std::int64_t>(count) ||
      modes->type().element_count() != static_cast<std::int64_t>(count) || count == 0 || leaves == 0)
    invalid("the lists of nodes differ in length or are empty");
  f.type = type_for(x, splits);
  for (std::size_t i = 0; i < count; ++i) {
    auto mode = modes->at_int(static_cast<std::int64_t>(i));
    if (mode < 0 || mode > 6) invalid("nodes_modes has the entry " + std::to_string(mode) + ", not 0 to 6");
    f.kinds.push_back(static_cast<branch>(mode));
    f.thresholds.push_back(splits->at(static_cast<std::int64_t>(i)));
  }
  f.members = members_of(n, f.kinds);
  f.missing_is_yes = n.has_attribute("nodes_missing_value_tracks_true")
                         ? list(n, "nodes_missing_value_tracks_true", count)
                         : std::vector<std::int64_t>(count, 0);
  result.leaves_from = static_cast<std::int64_t>(count);
  auto children = [&](const std::string& ids, const std::string& leaf_flags) {
    auto to = list(n, ids, count), is_leaf = list(n, leaf_flags, count);
    for (std::size_t i = 0; i < count; ++i) {
      auto limit = static_cast<std::int64_t>(is_leaf[i] ? leaves : count);
      if (to[i] < 0 || to[i] >= limit)
        invalid("attribute '" + ids + "' names node " + std::to_string(to[i]) + ", which does not exist");
      if (is_leaf[i]) to[i] += result.leaves_from;
    }
    return to;
  };
  f.yes = children("nodes_truenodeids", "nodes_trueleafs");
  f.no = children("nodes_falsenodeids", "nodes_falseleafs");
  f.roots = n.integers("tree_roots").value_or(std::vector<std::int64_t>{});
  for (std::int64_t root : f.roots)
    if (root < 0 || root >= result.leaves_from)
      invalid("tree_roots names node " + std::to_string(root) + ", which does not exist");
  if (f.roots.empty()) invalid("there are no trees");
  check_features(f, x);
  for (std::size_t i = 0; i < leaves; ++i) {
    f.yes.push_back(static_cast<std::int64_t>(count + i));
    f.no.push_back(static_cast<std::int64_t>(count + i));
  }
  f.kinds.resize(count + leaves, branch::leaf);
  f.features.resize(count + leaves);
  f.missing_is_yes.resize(count + leaves);
  f.thresholds.resize(count + leaves);
  f.depth = depth_of(f, 0);
  return result;
}

namespace {

// Returns whether the feature [N, trees] is in the set of the current node.
value is_member(builder& b, const forest& f, value feature, value at) {
  std::size_t most = 1;
  for (const auto& [i, set] : f.members) most = std::max(most, set.size());
  // Sets are padded with NaN, which equals no feature.
  std::vector<double> table(f.size() * most, std::numeric_limits<double>::quiet_NaN());
  for (const auto& [i, set] : f.members)
    std::ranges::copy(set, table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * most));
  shape type{f.type, {static_cast<std::int64_t>(f.size()), static_cast<std::int64_t>(most)}};
  value sets = b.add(gather{0}, {b.constant(literal::from_doubles(type, table)), at});
  auto apart = feature.type().dims;
  apart.emplace_back(1);
  return b.reduced(reduction_kind::max, b.binary(fn::equal, b.with_dims(feature, apart), sets), {2}, false);
}

}  // namespace

value leaves_of(builder& b, const forest& f, value x) {
  x = b.to_type(x, f.type);
  value at = b.broadcast_to(b.integers(f.roots), {x.type().dims.at(0), static_cast<std::int64_t>(f.roots.size())});
  std::vector<std::int64_t> numbers;
  std::set<branch> used;
  for (branch kind : f.kinds) {
    numbers.push_back(static_cast<std::int64_t>(kind));
    if (kind != branch::leaf) used.insert(kind);
  }
  value features = b.integers(f.features), yes = b.integers(f.yes), no = b.integers(f.no), kinds = b.integers(numbers);
  value thresholds = b.constant(literal::from_doubles({f.type, {static_cast<std::int64_t>(f.size())}}, f.thresholds));
  bool missing = std::ranges::any_of(f.missing_is_yes, [](std::int64_t m) { return m != 0; });
  auto look_up = [&](value table) { return b.add(gather{0}, {table, at}); };
  for (std::int64_t level = 0; level < f.depth; ++level) {
    value feature = b.add(gather_elements{1}, {x, look_up(features)}), threshold = look_up(thresholds), goes;
    value kind = used.size() > 1 ? look_up(kinds) : value{};
    for (branch k : used) {
      value holds;
      if (k == branch::member) {
        holds = is_member(b, f, feature, at);
      } else {
        holds = b.binary(std::ranges::find(comparisons, k, &comparison::kind)->function, feature, threshold);
        if (k == branch::not_equal) holds = b.unary(fn::logical_not, holds);
      }
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

double absent_weight(const forest& f, std::string_view how) {
  if (how != "MIN" && how != "MAX") return 0;
  return how == "MIN" ? largest_finite(f.type) : -largest_finite(f.type);
}

value aggregated(builder& b, const forest& f, value leaves, const literal& weights, const std::string& how) {
  value each = b.add(gather{0}, {b.constant(weights), leaves});
  if (how == "SUM") return b.reduced(reduction_kind::sum, each, {1}, false);
  if (how == "AVERAGE")
    return b.binary(fn::div, b.reduced(reduction_kind::sum, each, {1}, false), static_cast<double>(f.roots.size()));
  if (how != "MIN" && how != "MAX") refuse("aggregate_function '" + how + "' is not supported");
  value best = b.reduced(how == "MIN" ? reduction_kind::min : reduction_kind::max, each, {1}, false);
  return b.where(b.binary(fn::equal, best, absent_weight(f, how)), b.scalar(f.type, 0), best);
}

}  // namespace kiln::onnx_import
