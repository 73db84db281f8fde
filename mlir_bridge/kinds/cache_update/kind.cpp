// cache_update: a stage that copies the cache, which the runtime leaves out if the result shares the cache's memory,
// and a stage that computes the rows and stores them at their positions, for all caches of the kernel. The stages are
// the pointwise ones of each target.
#include "ir/ops/cache_update.hpp"

#include <algorithm>

#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::kinds {
namespace {

using namespace codegen;

using copy_function = void (*)(kernel_emitter&, value, const buffer&, bool prepare);
using part_function = void (*)(kernel_emitter&, std::vector<map_root> parts, const std::string& name);

// Emits the copy of a cache, and returns the rows with where they are stored.
template <copy_function Copy>
map_root begin_update(kernel_emitter& e, const instruction& at) {
  const auto& op = *at.op().get_if<cache_update>();
  const value result{const_cast<instruction*>(&at), 0}, cache = at.inputs()[0], rows = at.inputs()[1],
                                                        positions = at.inputs()[2];
  const auto axis = static_cast<std::size_t>(op.axis);
  const auto number = static_cast<std::size_t>(std::ranges::find(e.outputs(), result) - e.outputs().begin());
  const buffer to = e.output(number), source = e.materialize(cache), places = e.materialize(positions);
  const std::size_t before = e.launches().size();
  Copy(e, cache, to, false);
  if (source.kind == buffer_kind::input && e.launches().size() > before) e.last_stage_copies(source.index, to.index);
  const dim last = kernel_emitter::sizes(cache)[axis] - kernel_emitter::sizes(rows)[axis];
  const bool one = kernel_emitter::sizes(positions)[0] == dim(1);
  const auto loaded = [&e](const buffer& from, Value index, const dim& most) {
    const Value stored = e.code.load(e.pointer(from), index, from.type, 1);
    return e.min(e.code.max(convert_element(e.code, stored, from.type, e.code.index_element()), 0), most);
  };
  std::optional<buffer> layer;
  if (at.inputs().size() == 4) layer = e.materialize(at.inputs()[3]);
  // The number of rows along the axis in a layer, over all axes before it. A layer is skipped by as many rows.
  dim rows_of_layer = kernel_emitter::sizes(rows)[0];
  for (std::size_t i = 1; i <= axis; ++i) rows_of_layer = rows_of_layer * kernel_emitter::sizes(cache)[i];
  const dim layers = layer ? kernel_emitter::sizes(cache)[0] / kernel_emitter::sizes(rows)[0] : dim(1);
  const auto start = [=, &e](const position& where) {
    const Value place = loaded(places, one ? e.code.constant(0) : where[0].base, last);
    if (!layer) return place;
    return e.code.add(place, e.mul(loaded(*layer, e.code.constant(0), layers - 1), rows_of_layer));
  };
  return {rows, to, map_root::window{axis, start, !one}};
}

// Returns true if all updates are of the same form, so that one stage can store the rows of all.
bool are_alike(const kernel_emitter& e) {
  const instruction& own = *e.anchor();
  return std::ranges::all_of(e.inner_anchors(), [&](const inner_anchor& inner) {
    const auto same_type = [](value a, value b) { return a.type() == b.type(); };
    return inner.at->op() == own.op() && std::ranges::equal(inner.at->inputs(), own.inputs(), same_type);
  });
}

template <copy_function Copy, part_function Store>
void emit_cache_update(kernel_emitter& e) {
  if (!are_alike(e)) e.emit_inner_anchors();
  std::vector<map_root> parts;
  for (const inner_anchor& inner : e.inner_anchors()) parts.push_back(begin_update<Copy>(e, *inner.at));
  parts.push_back(begin_update<Copy>(e, *e.anchor()));
  Store(e, std::move(parts), "rows");
}

}  // namespace

std::span<const kernel_kind> cache_update_kinds() {
  constexpr auto on_cpu = emit_cache_update<cpu::emit_pointwise_into, cpu::emit_pointwise_parts>;
  constexpr auto on_gpu = emit_cache_update<gpu::emit_pointwise_into, gpu::emit_pointwise_parts>;
  static constexpr kernel_kind kinds[]{
      {.operation = "cache_update",
       .epilogue = false,
       .operand_reads = {0, 1, 0},
       .cpu = {.emit = on_cpu, .emit_open = on_cpu, .takes_inner = true},
       .gpu = {.emit = on_gpu, .emit_open = on_gpu, .takes_inner = true}},
  };
  return kinds;
}

}  // namespace kiln::kinds
