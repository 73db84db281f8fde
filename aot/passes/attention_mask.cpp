#include "aot/passes/attention_mask.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "aot/passes/facts.hpp"
#include "aot/passes/position_mask.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "ir/prefix_mask.hpp"

namespace kiln {
namespace {

using enum scalar_function;

// A score at or below this value has weight 0 in the softmax if any other score is visible.
constexpr double hidden_beside_others = -9999;
// Adding this to a score of realistic size gives the same number for all scores in f32. A row with only such scores has
// uniform weights.
constexpr double hides_all_differences = -1e30;

value narrow(value v) {
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  return v;
}

score_mask selection(value condition, bool hides, double fill) {
  condition = narrow(condition);
  while (is_function(condition, logical_not)) {
    condition = narrow(condition.producer->inputs()[0]);
    hides = !hides;
  }
  return {condition, hides ? mask_kind::hides : mask_kind::keeps, fill};
}

enum class constant_mask { other, nothing, later };

// Returns true if a score is seen where the mask's element is x, false if it is hidden, nullopt for anything else.
std::optional<bool> sees(const score_mask& m, double x) {
  if (m.kind != mask_kind::added)
    return m.fill <= hidden_beside_others ? std::optional((x != 0) == (m.kind == mask_kind::keeps)) : std::nullopt;
  return x == 0 ? std::optional(true) : x <= hidden_beside_others ? std::optional(false) : std::nullopt;
}

// The same as meaning() for a mask that is computed from positions.
constant_mask computed_meaning(const score_mask& m, const std::vector<dim>& scores) {
  const auto found = find_position_mask(m.what);
  const auto& dims = m.what.type().dims;
  const dim &queries = scores[scores.size() - 2], &keys = scores.back(), past = keys - queries;
  if (!found || sees(m, found->near) != true || sees(m, found->far) != false || !(found->limit == past))
    return constant_mask::other;
  // Every row sees a key: no dimension is negative.
  const bool sees_keys = past.is_static() ? past.value() >= 0 : past.is_symbol();
  return sees_keys && dims.back() == keys && dims[dims.size() - 2] == queries ? constant_mask::later
                                                                              : constant_mask::other;
}

// Returns whether a constant mask hides nothing, or exactly the keys j > i + (keys - queries).
constant_mask meaning(const score_mask& m, const std::vector<dim>& scores) {
  value v = m.what;
  while (v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
  const literal* data = module::constant(v);
  if (!data || !m.what.type().is_static()) return computed_meaning(m, scores);
  auto seen = [&](std::int64_t i) { return sees(m, data->at(i)); };
  std::int64_t count = m.what.type().element_count();
  bool all = true;
  for (std::int64_t i = 0; i < count && all; ++i) all = seen(i) == true;
  if (all) return constant_mask::nothing;
  const auto& dims = m.what.type().dims;
  const dim &queries = scores[scores.size() - 2], &keys = scores.back();
  if (dims.size() < 2 || !(dims.back() == keys) || !(dims[dims.size() - 2] == queries) || dim(count) != queries * keys)
    return constant_mask::other;
  // With more queries than keys some row has no visible key, and then a finite fill affects the result.
  std::int64_t columns = keys.value(), offset = columns - queries.value();
  if (offset < 0) return constant_mask::other;
  for (std::int64_t i = 0; i < count; ++i)
    if (seen(i) != (i % columns <= i / columns + offset)) return constant_mask::other;
  return constant_mask::later;
}

bool broadcasts(const std::vector<dim>& mask, const std::vector<dim>& scores) {
  if (mask.size() > scores.size()) return false;
  for (std::size_t i = 1; i <= mask.size(); ++i)
    if (!(mask[mask.size() - i] == dim(1)) && !(mask[mask.size() - i] == scores[scores.size() - i])) return false;
  return true;
}

// Writes a comparison of columns with a limit for each row, or the negation of one, as a prefix mask
// (ir/prefix_mask.hpp), which attention can use to skip keys. Returns v itself if it is no such comparison.
value as_prefix(rewriter& write, value v) {
  value compared = v;
  bool negated = false;
  for (;;) {
    const value from = compared.producer->inputs().empty() ? value{} : compared.producer->inputs()[0];
    if (compared.producer->op().is<reshape>() && only_unit_dims_change(from.type().dims, compared.type().dims)) {
      compared = from;
    } else if (is_function(compared, logical_not)) {
      compared = from, negated = !negated;
    } else {
      break;
    }
  }
  auto function = function_of(compared);
  if (!function || compared.producer->inputs().size() != 2 || compared.type().rank() == 0 || v.type().rank() == 0)
    return v;
  value columns = compared.producer->inputs()[0], limit = compared.producer->inputs()[1];
  const element_type type = limit.type().type;
  if (type != element_type::i32 && type != element_type::i64) return v;
  // The function as if the columns were on the left.
  constexpr std::array order{less, less_equal, greater, greater_equal};
  auto at = std::ranges::find(order, *function) - order.begin();
  if (at == std::ssize(order)) return v;
  if (!counts_columns(columns)) {
    std::swap(columns, limit);
    if (!counts_columns(columns)) return v;
    at = (at + 2) % 4;
  }
  // not (a < b) is a >= b, and not (a <= b) is a > b.
  if (negated) at = 3 - at;
  if (at > 1) return v;
  limit = narrow(limit);
  const dim keys = v.type().dims.back();
  std::vector<dim> dims = v.type().dims;
  dims.back() = 1;
  if (!(compared.type().dims.back() == keys)) return v;
  // The limit may vary along all axes but the last one.
  const bool one = std::ranges::all_of(limit.type().dims, [](const dim& d) { return d == dim(1); });
  if (one) dims.assign(dims.size(), dim(1));
  else if (!(limit.type().dims.back() == dim(1))) return v;
  else if (compared.type().dims == v.type().dims) dims = padded_dims(limit.type().dims, dims.size());
  else if (!only_unit_dims_change(limit.type().dims, dims)) return v;
  const value rows = write.broadcast_to(write.reshape_to(limit, dims), v.type().dims);
  std::vector<dim> row(v.type().rank(), dim(1));
  row.back() = keys;
  const iota numbers{type, row, static_cast<std::int64_t>(row.size()) - 1};
  const value counted = write.broadcast_to(write.add(numbers, {}), v.type().dims);
  return write.apply(order[static_cast<std::size_t>(at)], {counted, rows});
}

// A fill of -inf gives a boolean mask that is true where the score is visible; a finite fill gives an added mask.
value as_operand(rewriter& write, const score_mask& m, element_type fill_type) {
  if (m.kind == mask_kind::added) {
    // Zeros where a score is seen and -inf elsewhere.
    if (!is_function(m.what, where)) return m.what;
    const auto& inputs = m.what.producer->inputs();
    const auto yes = splat_of(inputs[1]), no = splat_of(inputs[2]);
    const bool keeps = yes == 0 && no && std::isinf(*no) && *no < 0,
               hides = no == 0 && yes && std::isinf(*yes) && *yes < 0;
    if (!keeps && !hides) return m.what;
    const value seen = as_prefix(write, keeps ? inputs[0] : write.apply(logical_not, {inputs[0]}));
    return find_prefix_mask(seen) ? seen : m.what;
  }
  bool keeps = m.kind == mask_kind::keeps;
  if (std::isinf(m.fill)) return as_prefix(write, keeps ? m.what : write.apply(logical_not, {m.what}));
  constexpr double lowest_bf16 = -3.3895313892515355e38;
  shape type = m.what.type().with_type(fill_type);
  value zero = write.splat(type, 0),
        fill = write.splat(type, fill_type == element_type::bf16 ? std::max(m.fill, lowest_bf16) : m.fill);
  return write.apply(where, {m.what, keeps ? zero : fill, keeps ? fill : zero});
}

std::optional<score_mask> selection_behind(rewriter& write, value v) {
  const operation& op = v.producer->op();
  std::vector<value> inputs = v.producer->inputs();
  if (is_function(v, where)) {
    const auto yes = splat_of(inputs[1]), no = splat_of(inputs[2]);
    if (yes == 0 && no && *no <= hides_all_differences) return score_mask{inputs[0], mask_kind::keeps, *no};
    if (no == 0 && yes && *yes <= hides_all_differences) return score_mask{inputs[0], mask_kind::hides, *yes};
    return std::nullopt;
  }
  if (!op.is<broadcast>() && !op.is<reshape>() && !op.is<transpose>() && !op.is<slice>() && !op.is<gather>())
    return std::nullopt;
  auto found = selection_behind(write, inputs[0]);
  if (!found) return std::nullopt;
  inputs[0] = found->what;
  found->what = write.add(op, std::move(inputs));
  return found;
}

}  // namespace

score_mask as_selection(rewriter& write, const score_mask& m) {
  const auto found = m.kind == mask_kind::added ? selection_behind(write, m.what) : std::nullopt;
  return found ? selection(found->what, found->kind == mask_kind::hides, found->fill) : m;
}

std::vector<masked_scores> masked_at(value v) {
  const auto& inputs = v.producer->inputs();
  std::vector<masked_scores> ways;
  if (is_function(v, add)) {
    for (std::size_t k : {0u, 1u}) ways.push_back({inputs[k], {narrow(inputs[1 - k]), mask_kind::added, 0}});
  } else if (is_function(v, where)) {
    if (auto fill = splat_of(inputs[2])) ways.push_back({inputs[1], selection(inputs[0], false, *fill)});
    if (auto fill = splat_of(inputs[1])) ways.push_back({inputs[2], selection(inputs[0], true, *fill)});
  }
  return ways;
}

std::optional<joined_mask> join_masks(rewriter& write, const std::vector<score_mask>& masks,
                                      const std::vector<dim>& scores, element_type fill_type) {
  joined_mask joined;
  for (const score_mask& m : masks) {
    if (!broadcasts(m.what.type().dims, scores)) return std::nullopt;
    constant_mask known = meaning(m, scores);
    if (known == constant_mask::nothing) continue;
    if (known == constant_mask::later) {
      joined.causal = true;
      continue;
    }
    if (m.kind != mask_kind::added && !(m.fill <= hides_all_differences)) return std::nullopt;
    value next = as_operand(write, m, fill_type);
    if (joined.mask && joined.mask.type().type != next.type().type) return std::nullopt;
    if (joined.mask) {
      auto dims = broadcast_dims(joined.mask.type().dims, next.type().dims);
      next = write.apply(next.type().type == element_type::boolean ? logical_and : add,
                         {write.broadcast_to(joined.mask, dims), write.broadcast_to(next, dims)});
    }
    joined.mask = next;
  }
  return joined;
}

}  // namespace kiln
