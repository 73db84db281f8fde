#include "aot/passes/restore_row_order.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

using axes = std::vector<std::int64_t>;

// The rows of a value are those of a tensor [lead..., columns] whose leading axes are permuted: axis i of the value's
// rows is axis order[i] of `lead`. Axes of one element are left out.
struct row_order {
  std::vector<dim> lead;
  axes order;

  bool operator==(const row_order&) const = default;
};

dim product_of(std::span<const dim> dims) {
  dim product = 1;
  for (const dim& d : dims) product = product * d;
  return product;
}

dim rows_of(const shape& type) { return product_of(std::span(type.dims).first(type.rank() - 1)); }

bool is_permutation_of_rows(value v) {
  return v.producer->op().is<transpose>() ||
         (v.producer->op().is<reshape>() && v.producer->inputs()[0].producer->op().is<transpose>());
}

// A transpose, perhaps behind a reshape that merges its last axes: the tensor before it, and the permutation that
// leaves the rows in the tensor's order.
struct permuted {
  value source;
  axes stored;  // of the source's axes: those of rows in ascending order, then those of the columns
  row_order order;
};

std::optional<permuted> find_permuted(value v) {
  if (v.type().rank() < 2 || !is_permutation_of_rows(v)) return std::nullopt;
  const instruction* turn = v.producer->op().is<transpose>() ? v.producer : v.producer->inputs()[0].producer;
  const axes& q = turn->op().get_if<transpose>()->permutation;
  const std::vector<dim>& dims = turn->outputs()[0].dims;
  // The last axes that make up the columns.
  std::size_t first = dims.size();
  dim columns = 1;
  do {
    if (first <= 1) return std::nullopt;
    columns = columns * dims[--first];
  } while (!(columns == v.type().dims.back()));
  permuted p{turn->inputs()[0], {q.begin(), q.begin() + static_cast<std::ptrdiff_t>(first)}, {}};
  axes moved;  // of the source's axes, those of rows with several elements, in the value's order
  for (std::size_t i = 0; i < first; ++i)
    if (!(dims[i] == dim(1))) moved.push_back(q[i]);
  if (std::ranges::is_sorted(moved)) return std::nullopt;
  std::ranges::sort(p.stored);
  p.stored.insert(p.stored.end(), q.begin() + static_cast<std::ptrdiff_t>(first), q.end());
  axes sorted = moved;
  std::ranges::sort(sorted);
  for (std::int64_t axis : sorted) p.order.lead.push_back(p.source.type().dims[static_cast<std::size_t>(axis)]);
  for (std::int64_t axis : moved) p.order.order.push_back(std::ranges::find(sorted, axis) - sorted.begin());
  return p;
}

bool is_last_axis(std::int64_t axis, value v) {
  return normalize_axis(axis, v.type().rank()) + 1 == static_cast<std::int64_t>(v.type().rank());
}

// Returns true for an operation that computes each row of its result from the same row of its operands.
bool keeps_row_order(const instruction& at) {
  const operation& op = at.op();
  if (at.outputs().size() != 1 || at.inputs().empty() || at.outputs()[0].rank() < 2) return false;
  const value x = at.inputs()[0];
  if (keeps_indices(op)) return true;
  if (const auto* n = op.get_if<normalize>()) return n->axes.size() == 1 && is_last_axis(n->axes[0], x);
  if (const auto* s = op.get_if<softmax>()) return is_last_axis(s->axis, x);
  const auto* d = op.get_if<dot>();
  return d && !d->transpose_a && x.type().rank() == 2;
}

class row_orders {
 public:
  explicit row_orders(module& m) : module_(m) {}

  // Finds the operations on permuted rows. Returns true if it pays to compute them on the rows as they are stored.
  bool find() {
    bool has_product = false;
    for (instruction& at : module_.instructions()) {
      check_stop();
      auto order = order_behind(at);
      if (!order) continue;
      orders_[at.output()] = *order;
      inside_.insert(&at);
      has_product |= at.op().is<dot>();
    }
    if (!has_product) return false;
    int gain = 0;
    for (const instruction& at : module_.instructions())
      if (at.op().is<transpose>() && vanishes(at)) ++gain;
    for (const instruction* at : inside_) gain += gain_of_exits(*at);
    return gain > 0;
  }

  void move() {
    for (place here = module_.instructions().begin(); here != module_.instructions().end(); ++here) {
      if (!inside_.contains(&*here)) continue;
      rewriter write(module_, here);
      const value moved = on_stored_rows(write, *here), old = here->output();
      const value again = permuted_back(write, moved, orders_.at(old), old.type().dims);
      orders_[again] = orders_.at(old);
      rows_[again] = moved;
      module_.replace(old, again);
    }
    module_.erase_dead();
  }

 private:
  std::optional<row_order> order_of(value v) const {
    if (auto found = orders_.find(v); found != orders_.end()) return found->second;
    if (keeps_columns(*v.producer))
      if (auto found = orders_.find(v.producer->inputs()[0]); found != orders_.end()) return found->second;
    const auto found = find_permuted(v);
    // A transpose of rows that are permuted already puts them back.
    const bool back =
        found && (orders_.contains(found->source) ||
                  (keeps_columns(*found->source.producer) && orders_.contains(found->source.producer->inputs()[0])));
    return found && !back ? std::optional(found->order) : std::nullopt;
  }

  // Returns the order of the rows that the operation computes; none if its operands differ, or are not permuted.
  std::optional<row_order> order_behind(const instruction& at) const {
    if (!keeps_row_order(at)) return std::nullopt;
    if (at.op().is<dot>()) return order_of(at.inputs()[0]);
    std::optional<row_order> order;
    for (value v : at.inputs()) {
      const auto own = order_of(v);
      if (!own && along_one_axis(v, v.type().rank() - 1)) continue;
      if (!own || (order && *order != *own)) return std::nullopt;
      order = own;
    }
    return order;
  }

  // A reshape that keeps the columns, and so the rows.
  static bool keeps_columns(const instruction& at) {
    return at.op().is<reshape>() && at.outputs()[0].rank() > 1 && at.inputs()[0].type().rank() > 1 &&
           at.inputs()[0].type().dims.back() == at.outputs()[0].dims.back();
  }

  bool is_output(const instruction& at) const {
    return std::ranges::any_of(module_.outputs(), [&](value v) { return v.producer == &at; });
  }

  // Returns true if all readers of the transpose are inside and the rows can be read as they are stored. Attention
  // stores its result in either order.
  bool vanishes(const instruction& turn) const {
    if (is_output(turn)) return false;
    for (instruction* user : turn.users()) {
      const value v = inside_.contains(user) ? value{const_cast<instruction*>(&turn), 0} : user->output();
      if (!inside_.contains(user) &&
          (!user->op().is<reshape>() || is_output(*user) ||
           !std::ranges::all_of(user->users(), [&](const instruction* u) { return inside_.contains(u); })))
        return false;
      const auto found = find_permuted(v);
      if (!found ||
          (!moves_nothing(found->source.type().dims, found->stored) && !found->source.producer->op().is<attention>()))
        return false;
    }
    return true;
  }

  // Returns true if what reads the value leads to a transpose, which can take up another one.
  bool is_turned(const instruction& at) const {
    if (at.op().is<transpose>()) return true;
    return (at.op().is<reshape>() || at.op().is<slice>()) && !is_output(at) && !at.users().empty() &&
           std::ranges::all_of(at.users(), [&](const instruction* user) { return is_turned(*user); });
  }

  int gain_of_exits(const instruction& at) const {
    bool plain = is_output(at);
    int turned = 0;
    auto visit = [&](const instruction* user) {
      if (inside_.contains(user)) return;
      if (is_turned(*user)) ++turned;
      else plain = true;
    };
    for (const instruction* user : at.users()) {
      const bool same = !inside_.contains(user) && keeps_columns(*user) && !is_output(*user) && !is_turned(*user);
      if (same) std::ranges::for_each(user->users(), visit);
      else visit(user);
    }
    return (turned > 0 ? 1 : 0) - (plain ? 1 : 0);
  }

  // Returns the rows of `v` as they are stored, [rows, columns].
  value stored_rows(rewriter& write, value v) {
    const std::vector<dim> flat{rows_of(v.type()), v.type().dims.back()};
    for (value at : {v, v.producer->op().is<reshape>() ? v.producer->inputs()[0] : v})
      if (auto found = rows_.find(at); found != rows_.end() && at.type().dims.back() == flat.back())
        return found->second;
    const auto found = find_permuted(v);
    const value rows = write.reshape_to(write.transpose_by(found->source, found->stored), flat);
    rows_[v] = rows;
    return rows;
  }

  value on_stored_rows(rewriter& write, const instruction& at) {
    std::vector<value> inputs = at.inputs();
    if (at.op().is<dot>()) {
      inputs[0] = stored_rows(write, inputs[0]);
      return write.add(at.op(), inputs);
    }
    for (value& v : inputs) {
      if (order_of(v)) {
        v = stored_rows(write, v);
        continue;
      }
      const value source = along_one_axis(v, v.type().rank() - 1);
      v = write.broadcast_to(write.reshape_to(source, {source.type().elements()}),
                             {rows_of(v.type()), v.type().dims.back()});
    }
    if (const auto* n = at.op().get_if<normalize>()) return write.add(normalize{{1}, n->epsilon, n->centered}, inputs);
    if (const auto* s = at.op().get_if<softmax>()) return write.add(softmax{1, s->logarithm}, inputs);
    return write.add(at.op(), inputs);
  }

  static value permuted_back(rewriter& write, value rows, const row_order& order, const std::vector<dim>& dims) {
    std::vector<dim> apart = order.lead;
    apart.push_back(dims.back());
    axes q = order.order;
    q.push_back(static_cast<std::int64_t>(q.size()));
    return write.reshape_to(write.transpose_by(write.reshape_to(rows, apart), q), dims);
  }

  module& module_;
  std::map<value, row_order> orders_;    // of the results of `inside_`
  std::set<const instruction*> inside_;  // the operations on permuted rows
  std::map<value, value> rows_;          // the same rows as they are stored
};

}  // namespace

bool restore_row_order::apply(module& m) const {
  row_orders rows(m);
  if (!rows.find()) return false;
  rows.move();
  return true;
}

}  // namespace kiln
