// cache_update: a stage that copies the cache, which the runtime leaves out if the result shares the cache's memory,
// and a stage that computes the rows and stores them at their positions. The stages are the pointwise ones of each
// target.
#include "ir/ops/cache_update.hpp"

#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::kinds {
namespace {

using namespace codegen;

using copy_function = void (*)(kernel_emitter&, value, const buffer&, bool prepare);
using part_function = void (*)(kernel_emitter&, const map_root&, const std::string& name);

template <copy_function Copy, part_function Store>
void emit_cache_update(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<cache_update>();
  const value cache = e.anchor()->inputs()[0], rows = e.anchor()->inputs()[1], positions = e.anchor()->inputs()[2];
  const auto axis = static_cast<std::size_t>(op.axis);
  const buffer to = e.output(0), source = e.materialize(cache), places = e.materialize(positions);
  Copy(e, cache, to, false);
  if (source.kind == buffer_kind::input && !e.launches().empty()) e.last_stage_copies(source.index, 0);
  const dim last = kernel_emitter::sizes(cache)[axis] - kernel_emitter::sizes(rows)[axis];
  const bool one = kernel_emitter::sizes(positions)[0] == dim(1);
  const auto loaded = [&](const buffer& from, Value index, const dim& most) {
    const Value stored = e.code.load(e.pointer(from), index, from.type, 1);
    return e.min(e.code.max(convert_element(e.code, stored, from.type, e.code.index_element()), 0), most);
  };
  std::optional<buffer> layer;
  if (e.anchor()->inputs().size() == 4) layer = e.materialize(e.anchor()->inputs()[3]);
  // The number of rows along the axis in a layer, over all axes before it. A layer is skipped by as many rows.
  dim rows_of_layer = kernel_emitter::sizes(rows)[0];
  for (std::size_t i = 1; i <= axis; ++i) rows_of_layer = rows_of_layer * kernel_emitter::sizes(cache)[i];
  const auto start = [&](const position& where) {
    const Value place = loaded(places, one ? e.code.constant(0) : where[0].base, last);
    if (!layer) return place;
    const dim layers = kernel_emitter::sizes(cache)[0] / kernel_emitter::sizes(rows)[0];
    return e.code.add(place, e.mul(loaded(*layer, e.code.constant(0), layers - 1), rows_of_layer));
  };
  Store(e, {rows, to, map_root::window{axis, start, !one}}, "rows");
}

}  // namespace

std::span<const kernel_kind> cache_update_kinds() {
  constexpr auto on_cpu = emit_cache_update<cpu::emit_pointwise_into, cpu::emit_pointwise_part>;
  constexpr auto on_gpu = emit_cache_update<gpu::emit_pointwise_into, gpu::emit_pointwise_part>;
  static constexpr kernel_kind kinds[]{
      {.operation = "cache_update",
       .epilogue = false,
       .operand_reads = {0, 1, 0},
       .cpu = {.emit = on_cpu, .emit_open = on_cpu},
       .gpu = {.emit = on_gpu, .emit_open = on_gpu}},
  };
  return kinds;
}

}  // namespace kiln::kinds
