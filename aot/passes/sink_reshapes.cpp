#include "aot/passes/sink_reshapes.hpp"

#include <algorithm>
#include <optional>

#include "aot/passes/facts.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

using match::any;
using match::op;
using axes = std::vector<std::int64_t>;

// Rebuilds a broadcast value with the dims `to` instead of `from`. Each group of axes must be broadcast as a whole or
// not at all.
value reshaped_broadcast(rewriter& write, value v, const std::vector<dim>& to) {
  const auto& from = v.type().dims;
  value source = v.producer->inputs()[0];
  auto narrow = padded_dims(source.type().dims, from.size());
  auto groups = reshape_groups(from, to);
  if (!groups) return {};
  std::vector<dim> dims(to.size(), dim(1));
  for (const reshape_group& group : *groups) {
    auto kept =
        std::count_if(group.from.begin(), group.from.end(), [&](std::size_t i) { return narrow[i] == from[i]; });
    if (kept == 0) continue;
    if (kept != static_cast<std::ptrdiff_t>(group.from.size())) return {};
    for (std::size_t i : group.to) dims[i] = to[i];
  }
  return write.broadcast_to(write.reshape_to(source, dims), to);
}

// Returns the operands of an elementwise operation with the dims `dims`, which one of them has behind a reshape; empty
// if that is too expensive. Reshapes, broadcasts and constants adapt for free. Any other operand gets an additional
// reshape (and then has to be in memory) only if the rank shrinks, as it does after a product of rows. The rank
// condition prevents two operands from moving a reshape back and forth.
std::vector<value> operands_behind(rewriter& write, const std::vector<value>& inputs, const std::vector<dim>& dims,
                                   bool may_add) {
  std::vector<value> moved;
  for (value v : inputs) {
    const operation& from = v.producer->op();
    if (from.is<reshape>() && v.producer->inputs()[0].type().dims == dims) {
      moved.push_back(v.producer->inputs()[0]);
    } else if (value spread = from.is<broadcast>() ? reshaped_broadcast(write, v, dims) : value{}) {
      moved.push_back(spread);
    } else if (from.is<constant>() || (may_add && dims.size() < v.type().rank() && !from.is<broadcast>())) {
      moved.push_back(write.reshape_to(v, dims));
    } else {
      return {};
    }
  }
  return moved;
}

// f(reshape(x), ...) → reshape(f(x, ...)).
value reshape_after_elementwise(rewriter& write, value root, const match::captures&) {
  const auto& inputs = root.producer->inputs();
  for (bool may_add : {false, true})
    for (value v : inputs) {
      if (!v.producer->op().is<reshape>() || is_constant_like(v)) continue;
      auto moved = operands_behind(write, inputs, v.producer->inputs()[0].type().dims, may_add);
      if (!moved.empty()) return write.reshape_to(write.add(root.producer->op(), moved), root.type().dims);
    }
  return {};
}

std::optional<axes> axes_of(const operation& op, std::size_t rank) {
  if (const auto* o = op.get_if<normalize>()) return o->axes;
  if (const auto* o = op.get_if<softmax>()) return axes{normalize_axis(o->axis, rank)};
  if (const auto* o = op.get_if<reduce>()) return o->axes;
  return std::nullopt;
}

operation with_axes(const operation& op, axes changed) {
  if (const auto* o = op.get_if<normalize>()) return normalize{std::move(changed), o->epsilon, o->centered};
  if (const auto* o = op.get_if<softmax>()) return softmax{changed[0], o->logarithm};
  const auto& o = *op.get_if<reduce>();
  return reduce{o.kind, std::move(changed), o.keep_dims};
}

// row(reshape(x)) → reshape(row(x)) if each axis of the row operation consists of whole axes of x.
value reshape_after_rows(rewriter& write, value root, const match::captures& found) {
  const operation& op = root.producer->op();
  value x = found["x"], flat = found["flat"];
  auto over = axes_of(op, flat.type().rank());
  if (!over || over->empty()) return {};
  auto groups = reshape_groups(x.type().dims, flat.type().dims);
  if (!groups) return {};
  axes inner;
  for (const reshape_group& group : *groups) {
    auto taken = std::count_if(group.to.begin(), group.to.end(), [&](std::size_t i) {
      return std::find(over->begin(), over->end(), static_cast<std::int64_t>(i)) != over->end();
    });
    if (taken == 0) continue;
    if (taken != static_cast<std::ptrdiff_t>(group.to.size())) return {};
    for (std::size_t i : group.from) inner.push_back(static_cast<std::int64_t>(i));
  }
  if (inner.empty() || (op.is<softmax>() && inner.size() != 1)) return {};
  return write.reshape_to(write.add(with_axes(op, inner), {x}), root.type().dims);
}

// Returns the coarsest dims that refine both lists, if one divides the other at every step.
std::optional<std::vector<dim>> common_refinement(const std::vector<dim>& a, const std::vector<dim>& b) {
  std::vector<dim> dims;
  std::size_t i = 0, j = 0;
  dim left = i < a.size() ? a[i] : dim(1), right = j < b.size() ? b[j] : dim(1);
  while (i < a.size() && j < b.size()) {
    if (left == right) {
      dims.push_back(left);
      if (++i < a.size()) left = a[i];
      if (++j < b.size()) right = b[j];
      continue;
    }
    if (!left.is_static() || !right.is_static() || left.value() <= 0 || right.value() <= 0) return std::nullopt;
    std::int64_t l = left.value(), r = right.value();
    if (l % r == 0) {
      dims.push_back(right);
      left = l / r;
      if (++j < b.size()) right = b[j];
    } else if (r % l == 0) {
      dims.push_back(left);
      right = r / l;
      if (++i < a.size()) left = a[i];
    } else {
      return std::nullopt;
    }
  }
  for (; i < a.size(); ++i)
    if (!(a[i] == dim(1))) return std::nullopt;
    else dims.push_back(1);
  for (; j < b.size(); ++j)
    if (!(b[j] == dim(1))) return std::nullopt;
    else dims.push_back(1);
  return dims;
}

// row(reshape(x)) over an axis that the reshape merged from parts of x's axes: splits the axes first, then applies the
// row operation, then merges.
value split_before_rows(rewriter& write, value root, const match::captures& found) {
  const operation& op = root.producer->op();
  value x = found["x"], flat = found["flat"];
  auto over = axes_of(op, flat.type().rank());
  if (!over || op.is<softmax>()) return {};
  auto fine = common_refinement(x.type().dims, flat.type().dims);
  if (!fine || *fine == x.type().dims || *fine == flat.type().dims) return {};
  auto groups = reshape_groups(*fine, flat.type().dims);
  if (!groups) return {};
  axes inner;
  for (const reshape_group& group : *groups) {
    if (std::find(over->begin(), over->end(), static_cast<std::int64_t>(group.to[0])) == over->end()) continue;
    for (std::size_t i : group.from) inner.push_back(static_cast<std::int64_t>(i));
  }
  if (inner.size() <= over->size()) return {};
  return write.reshape_to(write.add(with_axes(op, inner), {write.reshape_to(x, *fine)}), root.type().dims);
}

std::vector<rule> make_rules() {
  auto flat = op<reshape>().inputs({any().as("x")}).as("flat");
  auto rows = match::either({op<normalize>(), op<softmax>(), op<reduce>()});
  return {
      {"reshape_reshape", op<reshape>().inputs({op<reshape>().inputs({any().as("x")})}),
       [](rewriter& write, value root, const match::captures& found) {
         return write.reshape_to(found["x"], root.type().dims);
       }},
      {"reshape_after_elementwise", any().when([](value v) { return keeps_indices(v.producer->op()); }),
       reshape_after_elementwise},
      {"reshape_after_rows", rows.inputs({flat}), reshape_after_rows},
      {"split_before_rows", rows.inputs({flat}), split_before_rows},
  };
}

}  // namespace

bool sink_reshapes::apply(module& m) const {
  static const std::vector<rule> rules = make_rules();
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
