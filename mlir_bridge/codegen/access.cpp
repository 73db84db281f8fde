#include "mlir_bridge/codegen/access.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"
#include "ir/resized_axes.hpp"
#include "mlir_bridge/codegen/regrouped_axes.hpp"

namespace kiln::codegen {

access_analysis::forms access_analysis::identity() const {
  forms where;
  for (std::size_t i = 0; i < domain_.size(); ++i) {
    where.push_back(nothing());
    where.back().coefficients[i] = 1;
  }
  return where;
}

void access_analysis::add_root(value v) { trace(v, identity()); }

void access_analysis::add_window(const buffer& b) { load(b, identity()); }

access_analysis::form access_analysis::scaled(const form& f, const dim& factor, const dim& offset) const {
  if (!f.affine) return f;
  form result = f;
  for (auto& c : result.coefficients) c = c * factor;
  result.offset = f.offset * factor + offset;
  return result;
}

access_analysis::form access_analysis::sum(const form& a, const form& b) const {
  if (!a.affine || !b.affine) return opaque();
  form result = a;
  for (std::size_t i = 0; i < domain_.size(); ++i) result.coefficients[i] = result.coefficients[i] + b.coefficients[i];
  result.offset = result.offset + b.offset;
  return result;
}

void access_analysis::use(const form& f) {
  if (f.affine) used_.insert(f.coefficients);
}

void access_analysis::cut_at(const form& f, const dim& boundary) {
  if (!f.affine || domain_.empty() || f.coefficients.back() != 1) return;
  if (std::any_of(f.coefficients.begin(), f.coefficients.end() - 1, [](const dim& c) { return c != 0; })) return;
  const dim position = boundary - f.offset;
  if (!position.is_static() || !domain_.back().is_static()) return;
  if (position.value() > 0 && position.value() < domain_.back().value()) cuts_.insert(position.value());
}

void access_analysis::load(const buffer& b, const forms& where) {
  auto strides = b.strides();
  form linear = nothing();
  for (std::size_t i = 0; i < where.size(); ++i) linear = sum(linear, scaled(where[i], strides[i], 0));
  if (linear.affine) {
    use(linear);
    loads_.push_back(linear.coefficients);
  } else {
    for (const form& f : where) use(f);
  }
}

access_analysis::forms access_analysis::reshaped(const forms& where, const std::vector<dim>& from,
                                                 const std::vector<dim>& to) {
  forms result(to.size(), nothing());
  for (const auto& [i_begin, i, j_begin, j] : regroup_axes(from, to)) {
    form linear = nothing();
    dim stride = 1;
    for (std::size_t k = i; k-- > i_begin; stride = stride * from[k])
      if (from[k] != 1) linear = sum(linear, scaled(where[k], stride, 0));
    auto wide = std::count_if(to.begin() + static_cast<std::ptrdiff_t>(j_begin),
                              to.begin() + static_cast<std::ptrdiff_t>(j), [](const dim& d) { return d != 1; });
    for (std::size_t k = j_begin; k < j; ++k)
      if (to[k] != 1) result[k] = wide == 1 ? linear : opaque();
    if (wide > 1) use(linear);
    if (!linear.affine)
      for (std::size_t k = i_begin; k < i; ++k) use(where[k]);
  }
  return result;
}

void access_analysis::trace(value v, const forms& where) {
  if (!seen_.insert({v, where}).second) return;
  if (auto buffer = e_.in_memory(v)) return load(*buffer, where);
  const instruction& node = *v.producer;
  const operation& op = node.op();
  if (keeps_indices(op)) {
    for (value input : node.inputs()) trace(input, where);
  } else if (op.is<broadcast>()) {
    trace_broadcast(v, where);
  } else if (op.is<reshape>()) {
    trace(node.inputs()[0], reshaped(where, kernel_emitter::sizes(v), kernel_emitter::sizes(node.inputs()[0])));
  } else if (const auto* t = op.get_if<transpose>()) {
    forms source(where.size());
    for (std::size_t i = 0; i < where.size(); ++i) source[static_cast<std::size_t>(t->permutation[i])] = where[i];
    trace(node.inputs()[0], source);
  } else if (const auto* s = op.get_if<slice>()) {
    forms source;
    for (std::size_t i = 0; i < where.size(); ++i) source.push_back(scaled(where[i], s->steps[i], s->starts[i]));
    trace(node.inputs()[0], source);
  } else if (const auto* p = op.get_if<pad>()) {
    trace_pad(*p, node.inputs()[0], where);
  } else if (const auto* c = op.get_if<concat>()) {
    trace_concat(node, static_cast<std::size_t>(c->axis), where);
  } else if (const auto* io = op.get_if<iota>()) {
    use(where[static_cast<std::size_t>(io->axis)]);
  } else if (const auto* r = op.get_if<resize>()) {
    forms source = where;
    const auto &from = kernel_emitter::sizes(node.inputs()[0]), &to = kernel_emitter::sizes(v);
    for (std::size_t i = 0; i < where.size(); ++i) {
      if (keeps_axis(*r, i, from[i], to[i])) continue;
      use(where[i]);
      source[i] = opaque();
    }
    trace(node.inputs()[0], source);
  } else {
    trace_gathers(node, where);
  }
}

void access_analysis::trace_broadcast(value v, const forms& where) {
  const value input = v.producer->inputs()[0];
  const auto &from = kernel_emitter::sizes(input), &to = kernel_emitter::sizes(v);
  forms source;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t axis = to.size() - from.size() + i;
    const bool same = from[i] == to[axis];
    if (!same && from[i] != 1) use(where[axis]);  // may be stretched at run time
    source.push_back(same ? where[axis] : from[i] == 1 ? nothing() : opaque());
  }
  trace(input, source);
}

void access_analysis::trace_pad(const pad& op, value input, const forms& where) {
  forms source;
  const auto& from = kernel_emitter::sizes(input);
  for (std::size_t i = 0; i < where.size(); ++i) {
    source.push_back(scaled(where[i], 1, -op.before[i]));
    if (op.before[i] == 0 && op.after[i] == 0) continue;
    use(where[i]);
    cut_at(where[i], op.before[i]);
    cut_at(where[i], op.before[i] + from[i]);
  }
  trace(input, source);
}

void access_analysis::trace_concat(const instruction& node, std::size_t axis, const forms& where) {
  use(where[axis]);
  dim begin = 0;
  for (value input : node.inputs()) {
    cut_at(where[axis], begin);
    forms source = where;
    source[axis] = scaled(where[axis], 1, dim(0) - begin);
    trace(input, source);
    begin = begin + kernel_emitter::sizes(input)[axis];
  }
}

// The elements of the data that a gather reads depend on its indices, so their positions are opaque.
void access_analysis::trace_gathers(const instruction& node, const forms& where) {
  const operation& op = node.op();
  if (const auto* g = op.get_if<gather>()) {
    auto axis = g->axis, rank = static_cast<std::ptrdiff_t>(node.inputs()[1].type().rank());
    trace(node.inputs()[1], forms(where.begin() + axis, where.begin() + axis + rank));
    forms source(where.begin(), where.begin() + axis);
    source.push_back(opaque());
    source.insert(source.end(), where.begin() + axis + rank, where.end());
    trace(node.inputs()[0], source);
  } else if (const auto* ge = op.get_if<gather_elements>()) {
    trace(node.inputs()[1], where);
    forms source = where;
    source[static_cast<std::size_t>(ge->axis)] = opaque();
    trace(node.inputs()[0], source);
  } else if (const auto* nd = op.get_if<gather_nd>()) {
    auto prefix = static_cast<std::ptrdiff_t>(node.inputs()[1].type().rank()) - 1;
    forms of_index(where.begin(), where.begin() + prefix);
    of_index.push_back(nothing());
    trace(node.inputs()[1], of_index);
    forms source(where.begin(), where.begin() + nd->batch_dims);
    for (std::int64_t i = 0; i < kernel_emitter::sizes(node.inputs()[1]).back().value(); ++i)
      source.push_back(opaque());
    source.insert(source.end(), where.begin() + prefix, where.end());
    trace(node.inputs()[0], source);
  }
}

std::vector<std::vector<std::size_t>> access_analysis::runs() const {
  std::vector<std::vector<std::size_t>> result;
  for (std::size_t axis = 0; axis < domain_.size(); ++axis) {
    if (domain_[axis] == 1) continue;
    bool joins = !result.empty() && std::ranges::all_of(used_, [&](const auto& c) {
      return c[result.back().back()] == c[axis] * domain_[axis];
    });
    if (joins) result.back().push_back(axis);
    else result.push_back({axis});
  }
  return result;
}

std::vector<std::int64_t> access_analysis::cuts() const { return {cuts_.begin(), cuts_.end()}; }

std::optional<std::size_t> access_analysis::transposed_axis() const {
  for (const auto& c : loads_) {
    if (c.empty() || c.back() == 0 || c.back() == 1) continue;
    for (std::size_t axis = 0; axis + 1 < c.size(); ++axis)
      if (c[axis] == 1 && domain_[axis] != 1) return axis;
  }
  return std::nullopt;
}

}  // namespace kiln::codegen
