// cache_update: a stage that copies the cache, which the runtime leaves out if the result shares the cache's memory,
// and a stage that computes the rows and stores them at their positions, for all caches of the kernel. The stages are
// the pointwise ones of each target.
#include <algorithm>

#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/kinds/cache_update/updated_cache.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::kinds {
namespace {

using namespace codegen;

using part_function = void (*)(kernel_emitter&, std::vector<map_root> parts, const std::string& name);

// The rows of an update, and where they are stored.
map_root rows_of(kernel_emitter& e, const updated_cache& cache) {
  const auto start = [cache, &e](const position& where) {
    const Value place = cache.place(e, where[0].base);
    return cache.layer ? e.code.add(place, e.mul(cache.layer_number(e), cache.rows_of_layer)) : place;
  };
  return {cache.rows, cache.memory, map_root::window{cache.axis, start, !cache.one_place}};
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
  for (const inner_anchor& inner : e.inner_anchors()) parts.push_back(rows_of(e, begin_update(e, *inner.at, Copy)));
  parts.push_back(rows_of(e, begin_update(e, *e.anchor(), Copy)));
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
