#include "aot/passes/simplify_contractions.hpp"

#include <algorithm>

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/passes/unit_axes.hpp"

namespace kiln {
namespace {

using match::any;
using match::op;

// --- dot

bool swaps_last_two(value v) {
  const auto* t = v.producer->op().get_if<transpose>();
  if (!t || t->permutation.size() < 2) return false;
  auto swapped = t->permutation;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return is_identity(swapped);
}

value transposes_as_flags(rewriter& write, value root, const match::captures& found) {
  dot d = *root.producer->op().get_if<dot>();
  std::vector<value> inputs = root.producer->inputs();
  bool changed = false;
  for (std::size_t k = 0; k < 2; ++k) {
    if (!swaps_last_two(inputs[k])) continue;
    inputs[k] = inputs[k].producer->inputs()[0];
    (k == 0 ? d.transpose_a : d.transpose_b) ^= true;
    changed = true;
  }
  return changed ? write.add(d, inputs) : value{};
}

// If the right operand is the same for every batch, batches become rows of the left operand: [B..., M, K] · [K, N] →
// [B*M, K] · [K, N].
value batches_as_rows(rewriter& write, value root, const match::captures&) {
  const dot& d = *root.producer->op().get_if<dot>();
  value a = root.producer->inputs()[0], b = root.producer->inputs()[1];
  std::size_t rank = a.type().rank();
  if (rank < 3) return {};
  value shared = b;
  while (shared.producer->op().is<broadcast>()) shared = shared.producer->inputs()[0];
  const auto& dims = shared.type().dims;
  if (dims.size() < 2 || !std::equal(dims.end() - 2, dims.end(), b.type().dims.end() - 2)) return {};
  if (!std::all_of(dims.begin(), dims.end() - 2, [](const dim& one) { return one == dim(1); })) return {};
  dim batches = 1;
  for (std::size_t i = 0; i + 2 < rank; ++i) batches = batches * a.type().dims[i];
  if (d.transpose_a && !(batches == dim(1))) return {};
  value rows = write.reshape_to(
      a, {d.transpose_a ? a.type().dims[rank - 2] : batches * a.type().dims[rank - 2], a.type().dims[rank - 1]});
  value product = write.add(d, {rows, write.reshape_to(shared, {dims.end() - 2, dims.end()})});
  return write.reshape_to(product, root.type().dims);
}

// The batches of a group become rows if the group shares a right operand (grouped-query attention: x [B..., G, 1, K, N]
// is broadcast to [B..., G, R, K, N] and reshaped to [B..., G*R, K, N]).
value shared_batches_as_rows(rewriter& write, value root, const match::captures& found) {
  const dot& d = *root.producer->op().get_if<dot>();
  value a = root.producer->inputs()[0], b = root.producer->inputs()[1], x = found["x"];
  const auto& wide = found["wide"].type().dims;
  std::size_t rank = b.type().rank(), shared = rank - 2;  // the broadcast axis of `wide`
  if (d.transpose_a || rank < 3 || wide.size() != rank + 1 || x.type().rank() > wide.size()) return {};
  auto narrow = padded_dims(x.type().dims, wide.size());
  auto expected = wide;
  expected[shared] = 1;
  auto merged = wide;
  merged[shared - 1] = wide[shared - 1] * wide[shared];
  merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(shared));
  if (narrow != expected || merged != b.type().dims) return {};
  auto rows = a.type().dims, unshared = wide;
  rows[rank - 3] = wide[shared - 1];
  rows[rank - 2] = wide[shared] * rows[rank - 2];
  unshared.erase(unshared.begin() + static_cast<std::ptrdiff_t>(shared));
  return write.reshape_to(write.add(d, {write.reshape_to(a, rows), write.reshape_to(x, unshared)}), root.type().dims);
}

// --- constant factors into weights

// The axis of a contraction's result that corresponds to the columns of its weights.
std::size_t column_axis(const operation& contraction, std::size_t rank) {
  if (const auto* c = contraction.get_if<convolution>())
    return c->layout == tensor_layout::channels_first ? 1 : rank - 1;
  if (const auto* c = contraction.get_if<transposed_convolution>())
    return c->layout == tensor_layout::channels_first ? 1 : rank - 1;
  return rank - 1;
}

// Returns weights · factor, where `factor` holds one number per column, or one for all.
value scaled_weights(rewriter& write, const operation& contraction, value weights, value factor) {
  const auto& dims = weights.type().dims;
  std::size_t rank = dims.size();
  bool one = factor.type().elements() == dim(1);
  if (one) return write.apply(scalar_function::mul, {weights, write.broadcast_to(write.reshape_to(factor, {}), dims)});
  std::vector<dim> along(rank, dim(1));
  if (const auto* d = contraction.get_if<dot>()) {
    std::size_t axis = rank - (d->transpose_b ? 2 : 1);
    along[axis] = dims[axis];
  } else if (const auto* c = contraction.get_if<convolution>()) {
    std::size_t axis = c->layout == tensor_layout::channels_first ? 0 : rank - 1;
    along[axis] = dims[axis];
  } else {
    // With groups the columns are split: view [C, F/G, window...] as [G, C/G, F/G, window...] and the factor as [G, 1,
    // F/G, 1...].
    const auto* t = contraction.get_if<transposed_convolution>();
    if (!t || t->layout == tensor_layout::channels_last) return {};
    std::vector<dim> grouped{t->groups, dims[0] / dim(t->groups)}, factors(rank + 1, dim(1));
    grouped.insert(grouped.end(), dims.begin() + 1, dims.end());
    factors[0] = t->groups;
    factors[2] = dims[1];
    value spread = write.broadcast_to(write.reshape_to(factor, factors), grouped);
    return write.reshape_to(write.apply(scalar_function::mul, {write.reshape_to(weights, grouped), spread}), dims);
  }
  return write.apply(scalar_function::mul, {weights, write.broadcast_to(write.reshape_to(factor, along), dims)});
}

bool has_constant_weights(value v) {
  const operation& op = v.producer->op();
  bool contraction = op.is<dot>() || op.is<convolution>() || op.is<transposed_convolution>();
  return contraction && is_float(v) && is_constant_like(v.producer->inputs()[1]);
}

// Matches a constant factor with one number per column of the contraction's result, or one for all.
value factor_per_column(value contraction, value factor) {
  // A factor is not multiplied into weights that have fewer bits than the result: they would lose them.
  if (!is_constant_like(factor) || contraction.producer->inputs()[1].type().type != factor.type().type) return {};
  std::size_t axis = column_axis(contraction.producer->op(), contraction.type().rank());
  value source = along_one_axis(factor, axis);
  if (!source) return {};
  bool whole = source.type().elements() == contraction.type().dims[axis];
  return whole || source.type().elements() == dim(1) ? source : value{};
}

value factor_into_weights(rewriter& write, value, const match::captures& found) {
  value y = found["y"];
  if (!has_single_use(write.in(), y)) return {};
  value factor = factor_per_column(y, found["factor"]);
  if (!factor) return {};
  auto inputs = y.producer->inputs();
  inputs[1] = scaled_weights(write, y.producer->op(), inputs[1], factor);
  return inputs[1] ? write.add(y.producer->op(), inputs) : value{};
}

// (y + bias) · factor → y · factor + bias · factor, so that the factor can be merged into y's weights.
value factor_before_bias(rewriter& write, value, const match::captures& found) {
  value y = found["y"], factor = found["factor"];
  if (!has_single_use(write.in(), y) || !factor_per_column(y, factor)) return {};
  value scaled = write.apply(scalar_function::mul, {y, factor});
  return write.apply(scalar_function::add, {scaled, write.apply(scalar_function::mul, {found["bias"], factor})});
}

// --- images

// Merges zero padding of the spatial axes into the convolution.
value padding_into_convolution(rewriter& write, value root, const match::captures& found) {
  convolution c = *root.producer->op().get_if<convolution>();
  const auto& p = *found["padded"].producer->op().get_if<pad>();
  if (p.mode != pad_mode::constant_ || p.fill != 0) return {};
  std::size_t rank = p.before.size(), channel = column_axis(root.producer->op(), rank),
              first = c.layout == tensor_layout::channels_first ? 2 : 1;
  for (std::size_t axis : {std::size_t{0}, channel})
    if (p.before[axis] || p.after[axis]) return {};
  for (std::size_t i = 0; i < c.strides.size(); ++i)
    c.pads_begin[i] += p.before[first + i], c.pads_end[i] += p.after[first + i];
  return write.add(c, {found["x"], root.producer->inputs()[1]});
}

bool all_equal(const std::vector<std::int64_t>& list, std::int64_t n) {
  return std::all_of(list.begin(), list.end(), [n](std::int64_t each) { return each == n; });
}

// A pooling whose one window covers the image becomes a reduction; a pooling with windows of one element is removed.
value simpler_pooling(rewriter& write, value root, const match::captures& found) {
  const auto& p = *root.producer->op().get_if<pooling>();
  value x = found["x"];
  if (!all_equal(p.pads_begin, 0) || !all_equal(p.pads_end, 0)) return {};
  if (all_equal(p.window, 1) && all_equal(p.strides, 1)) return x;
  std::size_t first = p.layout == tensor_layout::channels_first ? 2 : 1;
  reduce whole{p.kind == pooling_kind::max ? reduction_kind::max : reduction_kind::mean, {}, true};
  for (std::size_t i = 0; i < p.window.size(); ++i) {
    if (!(x.type().dims[first + i] == dim(p.window[i])) || !(root.type().dims[first + i] == dim(1)) ||
        (p.window[i] > 1 && p.dilations[i] != 1))
      return {};
    whole.axes.push_back(static_cast<std::int64_t>(first + i));
  }
  return write.add(whole, {x});
}

// A convolution whose image and window are one pixel becomes a matrix product.
value convolution_of_one_pixel(rewriter& write, value root, const match::captures& found) {
  const auto& c = *root.producer->op().get_if<convolution>();
  value x = found["x"], weights = root.producer->inputs()[1];
  if (c.groups != 1 || !all_equal(c.pads_begin, 0) || !all_equal(c.pads_end, 0)) return {};
  bool first = c.layout == tensor_layout::channels_first;
  std::size_t rank = x.type().rank(), channel = first ? 1 : rank - 1;
  for (std::size_t i = 1; i < rank; ++i)
    if (i != channel && !(x.type().dims[i] == dim(1))) return {};
  const auto& w = weights.type().dims;
  for (std::size_t i = first ? 2 : 0; i < (first ? rank : rank - 2); ++i)
    if (!(w[i] == dim(1))) return {};
  dot product{.transpose_a = false, .transpose_b = first, .type = root.type().type};
  value rows = write.reshape_to(x, {x.type().dims[0], x.type().dims[channel]});
  value matrix =
      write.reshape_to(weights, first ? std::vector<dim>{w[0], w[1]} : std::vector<dim>{w[rank - 2], w[rank - 1]});
  return write.reshape_to(write.add(product, {rows, matrix}), root.type().dims);
}

// --- reduce

// Removes reductions over axes of extent 1.
value reduce_of_ones(rewriter& write, value root, const match::captures& found) {
  const auto& r = *root.producer->op().get_if<reduce>();
  for (std::int64_t axis : r.axes)
    if (!(found["x"].type().dims[static_cast<std::size_t>(axis)] == dim(1))) return {};
  return write.reshape_to(found["x"], root.type().dims);
}

// reshape(reduce) that restores the reduced axes as 1s → reduce with keep_dims.
value reduce_that_keeps_dims(rewriter& write, value root, const match::captures& found) {
  reduce r = *found["reduced"].producer->op().get_if<reduce>();
  if (r.keep_dims) return {};
  r.keep_dims = true;
  auto dims = found["x"].type().dims;
  for (std::int64_t axis : r.axes) dims[static_cast<std::size_t>(axis)] = 1;
  return dims == root.type().dims && has_single_use(write.in(), found["reduced"]) ? write.add(r, {found["x"]})
                                                                                  : value{};
}

std::vector<rule> make_rules() {
  auto x = any().as("x");
  auto contraction = any().when(has_constant_weights).as("y");
  auto factor = any().when(is_constant_like).as("factor");
  auto bias = any().when(is_constant_like).as("bias");
  return {
      {"transposes_as_flags", op<dot>(), transposes_as_flags},
      {"batches_as_rows", op<dot>(), batches_as_rows},
      {"shared_batches_as_rows",
       op<dot>().inputs({any(), op<reshape>().inputs({op<broadcast>().inputs({x}).as("wide")})}),
       shared_batches_as_rows},
      {"factor_into_weights", match::function(scalar_function::mul).commuted(contraction, factor), factor_into_weights},
      {"factor_before_bias",
       match::function(scalar_function::mul)
           .commuted(match::function(scalar_function::add).single_use().commuted(contraction, bias), factor),
       factor_before_bias},
      {"padding_into_convolution", op<convolution>().inputs({op<pad>().inputs({x}).as("padded"), any()}),
       padding_into_convolution},
      {"windows_over_one_pixel", op<convolution>().inputs({x, any()}), windows_over_one_pixel},
      {"column_as_row", op<convolution>().inputs({x, any()}), column_as_row},
      {"convolution_of_one_pixel", op<convolution>().inputs({x, any()}), convolution_of_one_pixel},
      {"simpler_pooling", op<pooling>().inputs({x}), simpler_pooling},
      {"reduce_of_ones", op<reduce>().inputs({x}), reduce_of_ones},
      {"reduce_that_keeps_dims", op<reshape>().inputs({op<reduce>().inputs({x}).as("reduced")}),
       reduce_that_keeps_dims},
  };
}

}  // namespace

bool simplify_contractions::apply(module& m) const {
  static const std::vector<rule> rules = make_rules();
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
