#include "mlir_bridge/kinds/attention/gpu/appended_rows.hpp"

#include <algorithm>

#include "ir/ops/cache_update.hpp"
#include "ir/ops/movement.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"

namespace kiln::gpu {

namespace {

constexpr std::size_t positions_axis = 2;  // of [batch, heads, positions, depth]

void store_to(kernel_emitter& e, const buffer& cache, Value row, Value depth, Value chunk) {
  code_builder& code = e.code;
  const Value element = code.add(e.mul(row, cache.sizes[3]), depth);
  store_chunk(code, code.address(e.pointer(cache), element, cache.type), chunk);
}

}  // namespace

std::optional<appended_rows::part> appended_rows::find_part(const kernel_emitter& e, value v,
                                                            const attention_problem& problem) {
  part found;
  std::int64_t first_batch = 0;
  if (const auto* taken = v.producer->op().get_if<slice>()) {
    const bool from_start = std::ranges::all_of(taken->starts.begin() + 1, taken->starts.end(),
                                                [](std::int64_t start) { return start == 0; });
    if (!from_start || std::ranges::any_of(taken->steps, [](std::int64_t step) { return step != 1; }))
      return std::nullopt;
    first_batch = taken->starts[0];
    v = v.producer->inputs()[0];
  }
  const bool is_inner =
      std::ranges::any_of(e.inner_anchors(), [&](const auto& inner) { return inner.at == v.producer; });
  const auto* op = v.producer->op().get_if<cache_update>();
  if (!is_inner || !op || op->axis != static_cast<std::int64_t>(positions_axis)) return std::nullopt;
  const std::vector<dim>&rows = kernel_emitter::sizes(v.producer->inputs()[1]), &cache = kernel_emitter::sizes(v);
  const bool fits = rows.size() == 4 && problem.batch_sizes.size() == 1 && problem.heads.is_static() &&
                    rows[0] == dim(problem.n.batch) && rows[1] == dim(problem.n.key_heads) && rows[2] == dim(1) &&
                    v.producer->inputs()[1].type().type == problem.query.type().type;
  if (!fits) return std::nullopt;
  // Without a number of the layer, the cache has one only.
  const bool layered = v.producer->inputs().size() == 4;
  if (layered ? first_batch % problem.n.batch != 0 : first_batch != 0 || cache[0] != rows[0]) return std::nullopt;
  found.update = v.producer;
  found.layer = first_batch / problem.n.batch;
  return found;
}

std::optional<appended_rows> appended_rows::find(kernel_emitter& e, const attention_problem& problem) {
  const bool first =
      problem.op.key_layout == head_layout::heads_first && problem.op.value_layout == head_layout::heads_first;
  if (!first || e.inner_anchors().size() != 2 || !(problem.queries == 1)) return std::nullopt;
  const auto keys = find_part(e, problem.key, problem), of_values = find_part(e, problem.value_, problem);
  if (!keys || !of_values || keys->update == of_values->update || keys->layer != of_values->layer) return std::nullopt;
  // Both are written at the same positions of caches with equal rows.
  const std::vector<dim>&k = kernel_emitter::sizes(keys->update->inputs()[0]),
        &v = kernel_emitter::sizes(of_values->update->inputs()[0]);
  if (!std::equal(k.begin(), k.begin() + 3, v.begin())) return std::nullopt;
  const auto& a = keys->update->inputs();
  const auto& b = of_values->update->inputs();
  if (!std::ranges::equal(a.begin() + 2, a.end(), b.begin() + 2, b.end())) return std::nullopt;
  appended_rows found;
  found.keys_ = *keys, found.values_ = *of_values;
  return found;
}

void appended_rows::begin(kernel_emitter& e) {
  e.set_inner_anchors({});
  for (part* each : {&keys_, &values_}) {
    each->cache = begin_update(e, *each->update, emit_pointwise_into);
    e.hold({const_cast<instruction*>(each->update), 0}, each->cache.memory);
  }
}

appended_rows::place appended_rows::find_place(kernel_emitter& e, const attention_problem::place& at) const {
  code_builder& code = e.code;
  const updated_cache& cache = keys_.cache;
  const std::vector<dim>& sizes = cache.memory.sizes;
  const Value number = cache.place(e, at.batch[0]);
  Value key = number, batch = at.batch[0];
  if (cache.layer) {
    const Value layer = cache.layer_number(e);
    key = code.select(code.equal(layer, code.constant(keys_.layer)), number, code.constant(-1));
    batch = code.add(batch, e.mul(layer, kernel_emitter::sizes(cache.rows)[0]));
  }
  return {key, code.add(e.mul(code.add(e.mul(batch, sizes[1]), at.key_head), sizes[2]), number)};
}

Value appended_rows::chunk_at(kernel_emitter& e, const part& of, const attention_problem::place& at,
                              Value depth) const {
  constexpr std::int64_t chunk = lane_layout::chunk;
  const position where{{at.batch[0], 0, {}},
                       {at.key_head, 0, {}},
                       {e.code.constant(0), 0, {}, 0, 1, any_multiple},
                       {depth, 1, {}, 0, INT64_MAX, chunk}};
  return chunk_of(e, of.cache.rows, where, {}, chunk);
}

Value appended_rows::key(kernel_emitter& e, const attention_problem::place& at, Value depth) const {
  return chunk_at(e, keys_, at, depth);
}
Value appended_rows::value_of(kernel_emitter& e, const attention_problem::place& at, Value depth) const {
  return chunk_at(e, values_, at, depth);
}

void appended_rows::store_key(kernel_emitter& e, const place& where, Value depth, Value chunk) const {
  store_to(e, keys_.cache.memory, where.row, depth, chunk);
}
void appended_rows::store_value(kernel_emitter& e, const place& where, Value depth, Value chunk) const {
  store_to(e, values_.cache.memory, where.row, depth, chunk);
}

}  // namespace kiln::gpu
