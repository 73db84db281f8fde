// Operators that read shapes, and operators that give the same elements another shape.
#include <algorithm>
#include <set>

#include "aot/onnx/input_values.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/symbolic.hpp"

namespace kiln::onnx_import {
namespace {

std::vector<value> shape_of(node& n) {
  const auto& dims = n.dims(0);
  auto rank = static_cast<std::int64_t>(dims.size());
  auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  std::int64_t start = clamped(n.integer("start", 0)), end = clamped(n.integer("end", rank));
  return {n.b.dims_tensor({dims.begin() + start, dims.begin() + std::max(start, end)})};
}

std::vector<value> size(node& n) { return {n.b.dims_tensor({n.type(0).elements()}, 0)}; }

// Whether no dimension is -1, which would be the only one.
bool is_listed(const known_elements& target) { return std::ranges::find(target, dim(-1)) == target.end(); }

std::vector<value> reshaped(node& n) {
  auto target = n.known(1, "shape");
  const auto& dims = n.dims(0);
  bool zero_copies = n.integer("allowzero", 0) == 0;
  std::optional<std::size_t> open;
  std::vector<std::size_t> perhaps_open;  // dimensions that are -1 for some values of an input
  dim total = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == dim(-1)) {
      if (open) invalid("the new shape has two dimensions of -1");
      open = i;
      continue;
    }
    if (target[i] == dim(0) && zero_copies) {
      if (i >= dims.size()) invalid("the new shape copies dimension " + std::to_string(i) + " of " + n.type(0).str());
      target[i] = dims.at(i);
    }
    if (target[i].is_static() && target[i].value() < 0)
      invalid("the new shape has the negative dimension " + target[i].str());
    if (is_listed(target) && may_be_negative(n, target[i], -1)) {
      perhaps_open.push_back(i);
      total = total * dim::max(target[i], dim(0) - target[i]);
      continue;
    }
    total = total * target[i];
  }
  for (std::size_t i : perhaps_open)
    target[i] = dim::max(target[i], 0) + dim::max(dim(0) - target[i], 0) * (n.type(0).elements() / dim::max(total, 1));
  if (open) {
    if (total == dim(0)) invalid("the new shape leaves a dimension of -1 open beside one of 0");
    target[*open] = n.type(0).elements() / total;
  }
  return {n.b.with_dims(n.in(0), target)};
}

std::vector<value> flatten(node& n) {
  auto rank = static_cast<std::int64_t>(n.rank(0)), axis = n.integer("axis", 1);
  if (axis < -rank || axis > rank) invalid("axis " + std::to_string(axis) + " is outside " + n.type(0).str());
  if (axis < 0) axis += rank;
  dim rows = 1, columns = 1;
  for (std::int64_t i = 0; i < rank; ++i)
    (i < axis ? rows : columns) = (i < axis ? rows : columns) * n.dims(0)[static_cast<std::size_t>(i)];
  return {n.b.with_dims(n.in(0), {rows, columns})};
}

std::set<std::int64_t> axes_within(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::set<std::int64_t> result;
  for (auto a : axes)
    if (!result.insert(normalize_axis(a, rank)).second) invalid("axis " + std::to_string(a) + " is named twice");
  return result;
}

// Refuses the size 1 when the model runs: a Squeeze without axes would remove an axis of this size. A size that is
// counted keeps its axis whatever the data is: its tensor has the largest size.
void need_other_than_one(node& n, const dim& d) {
  const auto counted = [](const std::string& symbol) { return symbol.starts_with(count_prefix); };
  if (d.is_static() || n.b.facts().at_least(d, 2) || std::ranges::any_of(d.symbols(), counted)) return;
  n.b.need_equal(dim::max(dim(1) - d, dim::min(d, 2) - dim(1)), 1,
                 "a size of 1 for " + d.str() +
                     " gives another rank, because axes are missing; compile the model for it with --dim");
}

std::vector<value> squeeze(node& n) {
  auto listed = n.numbers_since(13, "axes", 1);
  std::vector<dim> dims;
  auto axes = axes_within(listed.value_or(std::vector<std::int64_t>{}), n.rank(0));
  for (std::size_t i = 0; i < n.rank(0); ++i) {
    const dim& d = n.dims(0)[i];
    bool removed = listed ? axes.contains(static_cast<std::int64_t>(i)) : d == dim(1);
    if (removed) n.b.need_equal(d, 1, "axis " + std::to_string(i) + " of " + n.type(0).str() + " is not 1");
    if (removed) continue;
    if (!listed) need_other_than_one(n, d);
    dims.push_back(d);
  }
  return {n.b.with_dims(n.in(0), dims)};
}

std::vector<value> unsqueeze(node& n) {
  auto listed = n.numbers_since(13, "axes", 1);
  if (!listed) invalid("axes are missing");
  std::size_t rank = n.rank(0) + listed->size();
  auto axes = axes_within(*listed, rank);
  std::vector<dim> dims;
  for (std::size_t i = 0, from = 0; i < rank; ++i)
    dims.push_back(axes.contains(static_cast<std::int64_t>(i)) ? dim(1) : n.dims(0)[from++]);
  return {n.b.with_dims(n.in(0), dims)};
}

std::vector<value> expand(node& n) {
  auto target = n.known(1, "shape");
  for (const dim& d : target)
    if (d.is_static() && d.value() < 0) invalid("the new shape has the negative dimension " + d.str());
  // If the tensor has an extent of at least 2 along an axis, the new shape can only repeat it or be 1. The result has
  // the tensor's extent.
  const auto& dims = n.dims(0);
  for (std::size_t i = 0; i < std::min(dims.size(), target.size()); ++i) {
    const dim& is = dims.at(dims.size() - 1 - i);
    dim& wanted = target[target.size() - 1 - i];
    if (wanted.is_static() || !n.b.facts().at_least(is, 2)) continue;
    n.b.need_equal(dim::max(is, wanted), is, "a dimension of " + is.str() + " cannot become " + wanted.str());
    wanted = is;
  }
  return {n.b.broadcast_to(n.in(0), n.b.broadcast_shape(n.dims(0), target))};
}

// Reshapes [d0, d1, ...] to [1, d0, 1, d1, ...] and broadcasts it to [r0, d0, r1, d1, ...].
std::vector<value> tile(node& n) {
  auto repeats = n.known(1, "repeats");
  const auto& dims = n.dims(0);
  if (repeats.size() != dims.size())
    invalid("repeats has " + std::to_string(repeats.size()) + " entries for " + n.type(0).str());
  std::vector<dim> apart, stretched, joined;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i].is_static() && repeats[i].value() < 0) invalid("repeats has the negative entry " + repeats[i].str());
    joined.push_back(repeats[i] * dims.at(i));
    stretched.push_back(dims.at(i));
    apart.push_back(dims.at(i));
    if (repeats[i] == dim(1)) continue;
    stretched.insert(stretched.end() - 1, repeats[i]);
    apart.insert(apart.end() - 1, 1);
  }
  return {n.b.with_dims(n.b.broadcast_to(n.b.with_dims(n.in(0), apart), stretched), joined)};
}

// [N, C, H, W] with blocks of b x b: moves channels to space or back, with one transpose between two reshapes.
std::vector<value> depth_to_space(node& n) {
  std::int64_t block = n.integer("blocksize", 0);
  const auto dims = n.dims(0);
  if (dims.size() != 4 || block < 1 || block > 1 << 20)
    invalid("needs a positive blocksize and an input of rank 4, not " + std::to_string(block) + " and " +
            n.type(0).str());
  std::string mode = one_of(n, "mode", "DCR", {"DCR", "CRD"});
  dim depth = dims.at(1) / dim(block * block);
  if (!(depth * dim(block * block) == dims.at(1)))
    invalid("blocksize " + std::to_string(block) + " does not divide the channels of " + n.type(0).str());
  bool outer = mode == "DCR";
  value split = outer ? n.b.with_dims(n.in(0), {dims.at(0), block, block, depth, dims.at(2), dims.at(3)})
                      : n.b.with_dims(n.in(0), {dims.at(0), depth, block, block, dims.at(2), dims.at(3)});
  value moved = n.b.permuted(
      split, outer ? std::vector<std::int64_t>{0, 3, 4, 1, 5, 2} : std::vector<std::int64_t>{0, 1, 4, 2, 5, 3});
  return {n.b.with_dims(moved, {dims.at(0), depth, dims.at(2) * dim(block), dims.at(3) * dim(block)})};
}

std::vector<value> space_to_depth(node& n) {
  std::int64_t block = n.integer("blocksize", 0);
  const auto dims = n.dims(0);
  if (dims.size() != 4 || block < 1 || block > 1 << 20)
    invalid("needs a positive blocksize and an input of rank 4, not " + std::to_string(block) + " and " +
            n.type(0).str());
  std::string mode = one_of(n, "mode", "DCR", {"DCR", "CRD"});  // an attribute since opset 28
  dim height = dims.at(2) / dim(block), width = dims.at(3) / dim(block);
  value split = n.b.with_dims(n.in(0), {dims.at(0), dims.at(1), height, block, width, block});
  value moved = n.b.permuted(
      split, mode == "DCR" ? std::vector<std::int64_t>{0, 3, 5, 1, 2, 4} : std::vector<std::int64_t>{0, 1, 3, 5, 2, 4});
  return {n.b.with_dims(moved, {dims.at(0), dims.at(1) * dim(block * block), height, width})};
}

constexpr operator_row rows[] = {
    {"Shape", shape_of, 1},
    {"Size", size},
    {"Reshape", reshaped, 5},
    {"Flatten", flatten, 1},
    {"Squeeze", squeeze, 1},
    {"Unsqueeze", unsqueeze, 1},
    {"Expand", expand, 8},
    {"Tile", tile},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const operator_row> shape_operators() { return rows; }

}  // namespace kiln::onnx_import
