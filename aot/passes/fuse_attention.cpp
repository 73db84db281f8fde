#include "aot/passes/fuse_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aot/passes/attention_mask.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/passes/simplify_attention.hpp"

namespace kiln {
namespace {

using enum scalar_function;

using extents = std::vector<dim>;

// A reshape that keeps the last axis keeps the order of the rows.
bool keeps_rows(value v) {
  if (!v.producer->op().is<reshape>()) return false;
  const auto &to = v.type().dims, &from = v.producer->inputs()[0].type().dims;
  return !to.empty() && !from.empty() && to.back() == from.back();
}

bool is_float_conversion(value v) {
  return v.producer->op().is<convert>() && is_float(v) && is_float(v.producer->inputs()[0]);
}

struct factor {
  value rest;
  double number = 1;
};

// x · number, number · x, x / number.
std::optional<factor> factor_of(value v) {
  bool product = is_function(v, mul), quotient = is_function(v, div);
  if (!product && !quotient) return std::nullopt;
  value a = v.producer->inputs()[0], b = v.producer->inputs()[1];
  if (auto number = splat_of(b); number && *number != 0) return factor{a, product ? *number : 1 / *number};
  if (auto number = splat_of(a); number && product) return factor{b, *number};
  return std::nullopt;
}

// The operations between the first product and the softmax.
struct score_chain {
  value product;
  double scale = 1;
  std::vector<score_mask> masks;
  extents dims;  // of the scores at the mask; empty without a mask
};

// Traces from the softmax's input back to the product. Every value on the way must have one use.
std::optional<score_chain> trace_scores(const module& m, value v, score_chain so_far) {
  for (;;) {
    if (!has_single_use(m, v)) return std::nullopt;
    const auto& inputs = v.producer->inputs();
    if (v.producer->op().is<dot>()) return so_far.product = v, so_far;
    if (keeps_rows(v) || is_float_conversion(v)) {
      v = inputs[0];
    } else if (auto found = factor_of(v)) {
      so_far.scale *= found->number;
      v = found->rest;
    } else {
      break;
    }
  }
  if (!so_far.dims.empty() && so_far.dims != v.type().dims) return std::nullopt;
  so_far.dims = v.type().dims;
  for (const masked_scores& way : masked_at(v)) {
    // A scale that is applied after the mask was added also scales the mask.
    if (so_far.scale != 1 && (way.mask.kind == mask_kind::added || so_far.scale < 0)) continue;
    score_chain next = so_far;
    next.masks.push_back(way.mask);
    if (auto found = trace_scores(m, way.scores, std::move(next))) return found;
  }
  return std::nullopt;
}

// How the batches and rows of both products correspond to heads and queries: [outer..., heads, queries, keys] versus
// [batch..., rows, keys].
struct heads_of_scores {
  extents outer;
  dim heads, key_heads, queries, keys;

  extents with(const dim& head_count, const dim& positions, const dim& depth) const {
    extents dims = outer;
    dims.insert(dims.end(), {head_count, positions, depth});
    return dims;
  }
};

std::optional<heads_of_scores> split_heads(const extents& product, const extents& scores) {
  std::size_t rank = scores.size();
  if (rank != product.size() || rank < 3 || !(scores.back() == product.back())) return std::nullopt;
  heads_of_scores h{
      {scores.begin(), scores.end() - 3}, scores[rank - 3], product[rank - 3], scores[rank - 2], scores[rank - 1]};
  if (!std::equal(h.outer.begin(), h.outer.end(), product.begin())) return std::nullopt;
  const dim& rows = product[rank - 2];
  if (h.heads == h.key_heads) return rows == h.queries ? std::optional(h) : std::nullopt;
  if (!h.heads.is_static() || !h.key_heads.is_static() || h.key_heads.value() <= 0 ||
      h.heads.value() % h.key_heads.value())
    return std::nullopt;
  return rows == dim(h.heads.value() / h.key_heads.value()) * h.queries ? std::optional(h) : std::nullopt;
}

value turned(rewriter& write, value v) {
  std::vector<std::int64_t> permutation(v.type().rank());
  for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return write.transpose_by(v, permutation);
}

// Returns the operand before its conversion from `type` to a wider type.
value unwidened(value v, element_type type) {
  bool widened = is_float_conversion(v) && storage_bits(v.type().type) > storage_bits(type) &&
                 v.producer->inputs()[0].type().type == type;
  return widened ? v.producer->inputs()[0] : v;
}

// Returns true if v is only used after a conversion to `type`, a narrower one.
bool rounds_to(const module& m, value v, element_type type) {
  const auto& users = v.producer->users();
  const bool is_output = std::ranges::find(m.outputs(), v) != m.outputs().end();
  return !users.empty() && !is_output && storage_bits(type) < storage_bits(v.type().type) &&
         std::ranges::all_of(
             users,
             [&](const instruction* user) {
               const auto* c = user->op().get_if<convert>();
               return c && c->type == type;
             });
}

// The softmax behind one operand of the second product. `empty_rows_are_zero`: weights of rows that see no key are 0;
// without that, they are NaN.
struct found_weights {
  value weights;
  bool empty_rows_are_zero = false;
};

// Returns x of where(is_nan(x), 0, x) if nothing else uses it.
value without_nan(const module& m, value v) {
  if (!is_function(v, where) || !has_single_use(m, v)) return {};
  const value hidden = v.producer->inputs()[0], x = v.producer->inputs()[2];
  const bool is_guard = is_splat(v.producer->inputs()[1], 0) && is_function(hidden, is_nan) &&
                        hidden.producer->inputs()[0] == x && has_single_use(m, hidden);
  const auto outputs = std::ranges::count(m.outputs(), x);
  return is_guard && outputs == 0 && x.producer->users().size() == 2 ? x : value{};
}

// Finds a softmax over the last axis. Nothing else may use what lies between it and the product.
found_weights softmax_behind(const module& m, value v) {
  found_weights result;
  bool unshared = has_single_use(m, v);
  while (unshared) {
    if (const value plain = without_nan(m, v)) {
      result.empty_rows_are_zero = true;
      v = plain;
    } else if (keeps_rows(v) || is_float_conversion(v)) {
      v = v.producer->inputs()[0];
      unshared = has_single_use(m, v);
    } else {
      break;
    }
  }
  const auto* s = v.producer->op().get_if<softmax>();
  if (unshared && s && !s->logarithm &&
      normalize_axis(s->axis, v.type().rank()) + 1 == static_cast<std::int64_t>(v.type().rank()))
    result.weights = v;
  return result;
}

// Whether the only user of v swaps its heads and positions.
bool swaps_heads(const module& m, value v) {
  if (!has_single_use(m, v) || v.producer->users().empty()) return false;
  const auto* t = v.producer->users().front()->op().get_if<transpose>();
  return t && t->permutation == head_swap(v.type().rank());
}

// Writes the attention with zeros in the rows whose keys the mask hides all. Only a mask can hide all keys of a row.
// What is not finite in queries or keys stays NaN, though the model would hide that, too.
value with_zero_rows(rewriter& write, attention op, const std::vector<value>& inputs, bool swapped) {
  if (inputs.size() < 4) return write.add(op, inputs);
  value mask = inputs[3];
  const std::size_t rank = inputs[0].type().rank();
  mask = write.reshape_to(mask, padded_dims(mask.type().dims, rank));
  // The largest element of a row of the mask tells whether the row sees a key.
  value seen = write.add(reduce{reduction_kind::max, {static_cast<std::int64_t>(rank) - 1}, true}, {mask});
  if (seen.type().type != element_type::boolean)
    seen = write.apply(greater, {seen, write.splat(seen.type(), -std::numeric_limits<double>::infinity())});
  // A swap of heads and positions after the attention is a layout of its result, so it must not come after the zeros.
  if (swapped) {
    op.output_layout = head_layout::sequence_first;
    seen = write.transpose_by(seen, head_swap(rank));
  }
  const value all = write.add(op, inputs);
  value result = write.apply(where, {write.broadcast_to(seen, all.type().dims), all, write.splat(all.type(), 0)});
  return swapped ? write.transpose_by(result, head_swap(rank)) : result;
}

value fused(rewriter& write, value root, bool transposed) {
  const dot& second = *root.producer->op().get_if<dot>();
  // Handles P V, or V Pᵀ, whose result is the transpose.
  if (transposed ? !second.transpose_b : second.transpose_a) return {};
  const found_weights found = softmax_behind(write.in(), root.producer->inputs()[transposed ? 1 : 0]);
  if (!found.weights) return {};
  value scores = found.weights.producer->inputs()[0];
  auto chain = trace_scores(write.in(), scores, {});
  if (!chain) return {};
  const dot& first = *chain->product.producer->op().get_if<dot>();
  const extents& product = chain->product.type().dims;
  extents at = !chain->dims.empty()                     ? chain->dims
               : scores.type().rank() == product.size() ? scores.type().dims
                                                        : product;
  auto heads = split_heads(product, at);
  extents of_second = root.producer->inputs()[transposed ? 1 : 0].type().dims;
  if (!heads || of_second != product) return {};
  value query = chain->product.producer->inputs()[0], key = chain->product.producer->inputs()[1],
        values = root.producer->inputs()[transposed ? 0 : 1];
  attention op{.scale = chain->scale};
  for (value* operand : {&query, &key})
    while (auto scaled = factor_of(*operand)) {
      op.scale *= scaled->number;
      *operand = scaled->rest;
    }
  if (!std::isfinite(op.scale)) return {};
  // Weights and values in f32 whose result is rounded at once: the attention of the narrower type rounds it.
  const value narrow_values = is_float_conversion(values) ? values.producer->inputs()[0] : values;
  if (rounds_to(write.in(), root, narrow_values.type().type)) values = narrow_values;
  element_type type = values.type().type;
  query = unwidened(query, type);
  key = unwidened(key, type);
  for (value* operand : {&query, &key})
    if (is_float(*operand) && storage_bits(operand->type().type) < storage_bits(type))
      *operand = write.convert_to(*operand, type);
  if (query.type().type != type || key.type().type != type || !is_float(type) || storage_bits(type) < 16) return {};
  bool zero_rows = false;  // whether some rows may have weights of 0
  if (found.empty_rows_are_zero)
    for (score_mask& m : chain->masks) {
      m = as_selection(write, m);
      zero_rows |= m.kind == mask_kind::added || std::isinf(m.fill);
    }
  // In f16 the lowest f32 would become a number beside which scores still differ. bf16 has the range of f32.
  auto mask = join_masks(write, chain->masks, heads->with(heads->heads, heads->queries, heads->keys),
                         found.empty_rows_are_zero ? element_type::bf16 : element_type::f32);
  if (!mask || (zero_rows && mask->causal && mask->mask)) return {};
  op.causal = mask->causal;

  if (first.transpose_a) query = turned(write, query);
  if (!first.transpose_b) key = turned(write, key);
  if (transposed ? !second.transpose_a : second.transpose_b) values = turned(write, values);
  std::vector<value> inputs{
      write.reshape_to(query, heads->with(heads->heads, heads->queries, query.type().dims.back())),
      write.reshape_to(key, heads->with(heads->key_heads, heads->keys, key.type().dims.back())),
      write.reshape_to(values, heads->with(heads->key_heads, heads->keys, values.type().dims.back()))};
  if (mask->mask) inputs.push_back(mask->mask);
  const bool swapped = !transposed &&
                       root.type().dims == heads->with(heads->heads, heads->queries, values.type().dims.back()) &&
                       swaps_heads(write.in(), root);
  value result = zero_rows ? with_zero_rows(write, op, inputs, swapped) : write.add(op, inputs);
  result = write.convert_to(result, root.type().type);
  if (!transposed) return write.reshape_to(result, root.type().dims);
  extents rows = product;
  rows.back() = values.type().dims.back();
  return turned(write, write.reshape_to(result, rows));
}

value attention_of(rewriter& write, value root, const match::captures&) {
  value plain = fused(write, root, false);
  return plain ? plain : fused(write, root, true);
}

}  // namespace

bool fuse_attention::apply(module& m) const {
  static const std::vector<rule> rules{{"attention", match::op<dot>(), attention_of}};
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
