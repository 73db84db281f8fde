#include "mlir_bridge/codegen/pointwise_space.hpp"

#include <algorithm>
#include <numeric>

#include "ir/ops/all.hpp"

namespace kiln::codegen {

namespace {

// An output that ends in a reshape has the same bytes as the reshape's operand. If all roots agree in this, loops over
// the operands instead.
std::vector<map_root> without_reshapes(const kernel_emitter& e, std::vector<map_root> roots) {
  if (std::ranges::any_of(roots, [](const map_root& r) { return r.part.has_value(); })) return roots;
  auto stripped = roots;
  for (map_root& r : stripped) {
    while (r.v.producer->op().is<reshape>() && !e.in_memory(r.v)) r.v = r.v.producer->inputs()[0];
    r.destination.sizes = kernel_emitter::sizes(r.v);
  }
  bool agree = std::ranges::all_of(
      stripped, [&](const map_root& r) { return r.destination.sizes == stripped[0].destination.sizes; });
  return agree ? stripped : roots;
}

// Returns the position in the destination of a root.
position in_destination(code_builder& code, const map_root& r, position where) {
  if (!r.part) return where;
  axis_index& index = where[r.part->axis];
  Value& moved = index.each ? index.each : index.base;
  const Value start = r.part->start(where);
  moved = code.add(moved, index.each ? code.splat(start, code_builder::lanes_of(moved)) : start);
  index.low = INT64_MIN, index.high = INT64_MAX, index.multiple = 1;
  return where;
}

}  // namespace

std::vector<map_root> output_roots(const kernel_emitter& e) {
  std::vector<map_root> roots;
  for (std::size_t i = 0; i < e.outputs().size(); ++i) roots.push_back({e.outputs()[i], e.output(i)});
  return roots;
}

pointwise_space::pointwise_space(kernel_emitter& e, std::vector<map_root> roots)
    : e_(e),
      roots_(without_reshapes(e, std::move(roots))),
      domain_(roots_[0].part ? kernel_emitter::sizes(roots_[0].v) : roots_[0].destination.sizes),
      analysis_(e, domain_) {
  for (const map_root& r : roots_) {
    analysis_.add_root(r.v);
    if (r.part) analysis_.add_window(r.destination);
    if (r.part && r.part->start_depends_on_first_axis) analysis_.add_axis(0);
  }
  runs_ = analysis_.runs();
  if (runs_.empty()) runs_.push_back({});
  for (const auto& run : runs_)
    sizes_.push_back(std::accumulate(run.begin(), run.end(), dim(1),
                                     [&](const dim& n, std::size_t axis) { return n * domain_[axis]; }));
  if (std::ranges::all_of(sizes_, &dim::is_static))
    for (const dim& size : sizes_) extents_.push_back(size.value());
}

std::vector<std::int64_t> pointwise_space::cuts() const {
  // Cuts are positions along the last domain axis, so they need a run that consists of this axis alone.
  bool alone = runs_.back().size() == 1 && runs_.back()[0] + 1 == domain_.size();
  return alone ? analysis_.cuts() : std::vector<std::int64_t>();
}

std::optional<std::size_t> pointwise_space::transposed_run() const {
  auto axis = analysis_.transposed_axis();
  if (!axis) return std::nullopt;
  for (std::size_t run = 0; run + 1 < runs_.size(); ++run)
    if (!runs_[run].empty() && runs_[run].back() == *axis) return run;
  return std::nullopt;
}

element_type pointwise_space::widest() const {
  element_type type = element_type::f32;
  auto consider = [&](element_type t) {
    if (storage_bits(compute_type(t)) > storage_bits(compute_type(type))) type = t;
  };
  for (const map_root& r : roots_) consider(r.destination.type);
  for (const instruction& i : e_.fusion.instructions())
    if (keeps_indices(i.op())) consider(i.outputs()[0].type);
  return type;
}

std::int64_t pointwise_space::operations() const {
  return std::max<std::int64_t>(
      1, std::ranges::count_if(e_.fusion.instructions(), [](const instruction& i) { return keeps_indices(i.op()); }));
}

position pointwise_space::at(const std::vector<axis_index>& of_runs) const {
  position where(domain_.size(), axis_index{e_.code.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t run = 0; run < runs_.size(); ++run)
    if (!runs_[run].empty()) where[runs_[run].back()] = of_runs[run];
  return where;
}

values pointwise_space::evaluate(const position& where, std::int64_t lanes) const {
  evaluator ev(e_);
  values results;
  for (const map_root& r : roots_) results.push_back(ev.at(r.v, where, lanes));
  return results;
}

void pointwise_space::store(const position& where, std::span<const Value> results) const {
  evaluator ev(e_);
  for (std::size_t k = 0; k < roots_.size(); ++k)
    ev.store(roots_[k].destination, in_destination(e_.code, roots_[k], where), results[k]);
}

}  // namespace kiln::codegen
