#include "aot/passes/sink_transposes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "aot/passes/facts.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

using axes = std::vector<std::int64_t>;

// An operation on stored operands, and the permutation from its output to the wanted output.
struct sunk {
  operation op;
  axes permutation;
};

// Converts a list per logical axis to a list per stored axis.
template <class T>
std::vector<T> stored_order(const std::vector<T>& logical, const axes& q) {
  std::vector<T> stored(logical.size());
  for (std::size_t i = 0; i < logical.size(); ++i) stored[static_cast<std::size_t>(q[i])] = logical[i];
  return stored;
}

axes stored_axes(const axes& logical, const axes& q) {
  axes stored;
  for (std::int64_t axis : logical) stored.push_back(q[static_cast<std::size_t>(axis)]);
  std::sort(stored.begin(), stored.end());
  return stored;
}

std::int64_t stored_axis(std::int64_t axis, const axes& q) {
  return q[static_cast<std::size_t>(normalize_axis(axis, q.size()))];
}

// The permutation q after these logical axes are removed.
axes without(const axes& q, const axes& gone) {
  axes kept;
  for (std::size_t i = 0; i < q.size(); ++i)
    if (std::find(gone.begin(), gone.end(), static_cast<std::int64_t>(i)) == gone.end()) kept.push_back(q[i]);
  axes ranks;
  for (std::int64_t axis : kept)
    ranks.push_back(std::count_if(kept.begin(), kept.end(), [&](std::int64_t other) { return other < axis; }));
  return ranks;
}

std::optional<sunk> through_reshape(const std::vector<dim>& logical, const std::vector<dim>& wanted, const axes& q) {
  auto groups = reshape_groups(logical, wanted);
  if (!groups) return std::nullopt;
  // Each group must be adjacent and in order in storage, ignoring dims of 1.
  auto position = [&](std::size_t axis) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < q.size(); ++i) before += q[i] < q[axis] && !(logical[i] == dim(1));
    return before;
  };
  std::vector<std::pair<std::int64_t, const reshape_group*>> order;
  for (const reshape_group& group : *groups) {
    for (std::size_t k = 1; k < group.from.size(); ++k)
      if (position(group.from[k]) != position(group.from[k - 1]) + 1) return std::nullopt;
    order.emplace_back(position(group.from.front()), &group);
  }
  std::sort(order.begin(), order.end());
  axes placed;  // logical output axes in stored order
  for (const auto& [at, group] : order)
    for (std::size_t axis : group->to) placed.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    if (!(wanted[axis] == dim(1))) continue;
    auto previous = std::find(placed.begin(), placed.end(), static_cast<std::int64_t>(axis) - 1);
    placed.insert(previous == placed.end() ? placed.begin() : previous + 1, static_cast<std::int64_t>(axis));
  }
  return sunk{reshape{permute(wanted, placed)}, inverse(placed)};
}

// Applies `at` to inputs that are all stored through q (logical axis i is stored axis q[i]). Returns none if it does
// not commute with q.
std::optional<sunk> commute(const instruction& at, const axes& q) {
  const operation& op = at.op();
  if (keeps_indices(op)) return sunk{op, q};
  if (const auto* o = op.get_if<concat>()) return sunk{concat{stored_axis(o->axis, q)}, q};
  if (const auto* o = op.get_if<pad>())
    return sunk{pad{stored_order(o->before, q), stored_order(o->after, q), o->mode, o->fill}, q};
  if (const auto* o = op.get_if<slice>())
    return sunk{slice{stored_order(o->starts, q), stored_order(o->lengths, q), stored_order(o->steps, q)}, q};
  if (const auto* o = op.get_if<softmax>()) return sunk{softmax{stored_axis(o->axis, q), o->logarithm}, q};
  if (const auto* o = op.get_if<normalize>())
    return sunk{normalize{stored_axes(o->axes, q), o->epsilon, o->centered}, q};
  if (const auto* o = op.get_if<cumulative_sum>())
    return sunk{cumulative_sum{stored_axis(o->axis, q), o->exclusive, o->reverse}, q};
  if (const auto* o = op.get_if<top_k>()) return sunk{top_k{o->k, stored_axis(o->axis, q), o->largest}, q};
  if (const auto* o = op.get_if<reduce>())
    return sunk{reduce{o->kind, stored_axes(o->axes, q), o->keep_dims}, o->keep_dims ? q : without(q, o->axes)};
  if (const auto* o = op.get_if<arg_reduce>()) {
    std::int64_t axis = normalize_axis(o->axis, q.size());
    return sunk{arg_reduce{o->largest, stored_axis(axis, q), o->keep_dims, o->select_last},
                o->keep_dims ? q : without(q, {axis})};
  }
  if (const auto* o = op.get_if<gather>()) {
    std::int64_t axis = normalize_axis(o->axis, q.size());
    std::size_t index_rank = at.inputs()[1].type().rank();
    if (index_rank > 1) return std::nullopt;
    return sunk{gather{stored_axis(axis, q)}, index_rank == 1 ? q : without(q, {axis})};
  }
  if (const auto* o = op.get_if<resize>()) {
    resize moved = *o;
    moved.dims = stored_order(o->dims, q);
    moved.scales = stored_order(o->scales, q);
    return sunk{moved, q};
  }
  if (const auto* o = op.get_if<broadcast>()) {
    auto lead = static_cast<std::int64_t>(o->dims.size() - q.size());
    axes wider;
    for (std::int64_t i = 0; i < lead; ++i) wider.push_back(i);
    for (std::int64_t axis : q) wider.push_back(axis + lead);
    return sunk{broadcast{stored_order(o->dims, wider)}, wider};
  }
  if (const auto* o = op.get_if<reshape>()) return through_reshape(at.inputs()[0].type().dims, o->dims, q);
  return std::nullopt;
}

// Returns `v` stored through q.
value stored_form(rewriter& write, value v, const axes& q) {
  axes back = inverse(q);
  if (const auto* t = v.producer->op().get_if<transpose>(); t && t->permutation == q) return v.producer->inputs()[0];
  if (v.producer->op().is<broadcast>()) {
    value source = v.producer->inputs()[0];
    source = write.reshape_to(source, padded_dims(source.type().dims, q.size()));
    return write.broadcast_to(write.transpose_by(source, back), permute(v.type().dims, back));
  }
  return write.transpose_by(v, back);
}

// Number of leading inputs that are moved; the indices of a gather stay as they are.
std::size_t moved_inputs(const instruction& at) { return at.op().is<gather>() ? 1 : at.inputs().size(); }

bool moves_for_free(value v) {
  return v.producer->op().is<broadcast>() || is_constant_like(v) || v.producer->op().is<iota>();
}

// Returns true for a join of an input with something else, as decoders do it: the input is a cache of earlier keys, and
// the transpose of it would cost more than that of the new keys.
bool appends_to_input(const instruction& at) {
  return at.op().is<concat>() && at.inputs().size() == 2 && at.inputs()[0].producer->op().is<parameter>();
}

// Returns the permutation through which most inputs are stored. Returns nullopt if using it would need transposes of
// more tensors than it removes. A result that is an output of the module counts as one that needs a transpose.
std::optional<axes> majority(const instruction& at, bool is_output, bool ties) {
  std::map<axes, int> votes;
  int others = is_output || appends_to_input(at) ? 1 : 0;
  std::size_t rank = at.inputs().empty() ? 0 : at.inputs()[0].type().rank();
  for (value v : std::span(at.inputs()).first(moved_inputs(at))) {
    if (v.type().rank() != rank) return std::nullopt;
    if (const auto* t = v.producer->op().get_if<transpose>()) ++votes[t->permutation];
    else if (!moves_for_free(v)) ++others;
  }
  if (votes.empty()) return std::nullopt;
  auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [q, count] : votes)
    if (q != best->first) others += count;
  return best->second > others || (ties && best->second == others) ? std::optional(best->first) : std::nullopt;
}

}  // namespace

bool sink_transposes::apply(module& m) const {
  bool changed = false;
  std::set<const instruction*> outputs;
  for (value v : m.outputs()) outputs.insert(v.producer);
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    if (!m.has_uses(&at)) continue;
    rewriter write(m, here);
    if (const auto* outer = at.op().get_if<transpose>()) {
      const auto* inner = at.inputs()[0].producer->op().get_if<transpose>();
      if (!inner) continue;
      value source = at.inputs()[0].producer->inputs()[0];
      axes both;
      for (std::int64_t axis : outer->permutation) both.push_back(inner->permutation[static_cast<std::size_t>(axis)]);
      m.replace(at.output(), write.transpose_by(source, both));
      changed = true;
      continue;
    }
    auto q = majority(at, outputs.contains(&at), ties);
    if (!q) continue;
    auto moved = commute(at, *q);
    if (!moved) continue;
    std::vector<value> inputs = at.inputs();
    for (std::size_t k = 0; k < moved_inputs(at); ++k) inputs[k] = stored_form(write, inputs[k], *q);
    value made = write.add(std::move(moved->op), std::move(inputs));
    for (std::uint32_t i = 0; i < at.outputs().size(); ++i)
      m.replace({&at, i}, write.transpose_by({made.producer, i}, moved->permutation));
    changed = true;
  }
  m.erase_dead();
  return changed;
}

}  // namespace kiln
