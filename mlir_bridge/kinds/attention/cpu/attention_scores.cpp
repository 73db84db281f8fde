#include "mlir_bridge/kinds/attention/cpu/attention_emitter.hpp"

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

void attention_emitter::load_queries() {
  code.loop(0, tile.rows, 1, [&](Value r) {
    query_row row = row_at(code.add(first_row, r));
    Value kept_row = code.add(slot, r);
    sweep(code.constant(n.depth), e.lanes_for(sum_type, std::max<std::int64_t>(n.depth, 1)),
          [&](Value d, std::int64_t lanes) {
            evaluator ev(e);
            values where = in_layout(row.head, row.position, d, op.query_layout);
            const Value elements = ev.at(query, ev.along(where, lanes), lanes);
            code.store(query_tile, code.add(at_row(kept_row, query_pitch()), d), query_type(),
                       by_lane ? elements : times(elements, number(op.scale, lanes)));
          });
    for (std::int64_t d = n.depth; d < query_pitch(); ++d)
      code.store(query_tile, code.add(at_row(kept_row, query_pitch()), d), query_type(), number(0));
    code.store(tops, kept_row, sum_type, number(lowest));
    code.store(sums, kept_row, sum_type, number(0));
  });
}

void attention_emitter::make_scores(Value first, Value count) {
  if (direct) return make_scores_directly(first, count);
  factor left{query_tile, query_type(), query_pitch(), neighbours_of(by_lane)},
      right{e.pointer(packed.right), packed.right.type, 0, packed.right_step};
  right.by_lane = by_lane;
  // The loaded steps of all rows need registers beside the sums.
  if ((tile.rows + 1) * (tile.vectors + 1) <= e.target.vector_registers)
    left.steps_of_load = loads_of(e.target, sum_type, true).steps;
  Value panels = code.div(code.add(count, tile.columns() - 1), code.constant(tile.columns())),
        first_panel = code.div(first, code.constant(tile.columns()));
  code.loop(code.constant(0), panels, 1, [&](Value p) {
    Value at = code.add(code.mul(group, packed.right_group), code.mul(code.add(first_panel, p), packed.right_panel));
    values made = accumulate(code, tile, {0, tile.rows}, left, at_row(slot, query_pitch()), right, at, packed.steps, 1,
                             sum_type, zero_tile(code, tile, sum_type));
    if (by_lane)
      for (Value& score : made) score = times(score, number(op.scale, tile.lanes));
    for (std::size_t i = 0; i < made.size(); ++i) {
      auto r = static_cast<std::int64_t>(i) / tile.vectors, v = static_cast<std::int64_t>(i) % tile.vectors;
      code.store(scores, code.add(code.mul(p, tile.columns()), r * chunk + v * tile.lanes), sum_type, made[i]);
    }
  });
}

void attention_emitter::make_scores_directly(Value first, Value count) {
  const std::int64_t lanes = register_lanes(e, sum_type), even = n.depth / lanes * lanes;
  Value pointer = e.pointer(keys_at);
  auto [start, pitch] = place_of_group(op.key_layout, n.keys, n.depth);
  auto some = [&, start = start, pitch = pitch](Value j, std::int64_t keys) {
    Value from = code.add(start, code.mul(code.add(first, j), pitch));
    auto add = [&](Value d, std::int64_t width, std::span<const Value> so_far) {
      values all(so_far.begin(), so_far.end());
      for (std::int64_t k = 0; k < keys; ++k) {
        Value elements = widen(code, code.load(pointer, code.add(code.add(from, d), k * pitch), keys_at.type, width),
                               keys_at.type, sum_type);
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          Value& sum = all[static_cast<std::size_t>(r * keys + k)];
          sum = code.fma(
              code.load(query_tile, code.add(at_row(slot, n.depth), code.add(d, r * n.depth)), sum_type, width),
              elements, sum);
        }
      }
      return all;
    };
    values made = code.loop(0, even, lanes, values(static_cast<std::size_t>(tile.rows * keys), number(0, lanes)),
                            [&](Value d, std::span<const Value> so_far) { return add(d, lanes, so_far); });
    for (Value& sum : made) sum = code.horizontal(mlir::vector::CombiningKind::ADD, sum);
    made = code.loop(even, n.depth, 1, made, [&](Value d, std::span<const Value> so_far) { return add(d, 1, so_far); });
    for (std::size_t i = 0; i < made.size(); ++i)
      code.store(scores, code.add(j, static_cast<std::int64_t>(i) / keys * chunk + static_cast<std::int64_t>(i) % keys),
                 sum_type, made[i]);
  };
  Value even_keys = code.mul(code.div(count, code.constant(keys_at_once)), keys_at_once);
  code.loop(code.constant(0), even_keys, keys_at_once, [&](Value j) { some(j, keys_at_once); });
  code.loop(even_keys, count, 1, [&](Value j) { some(j, 1); });
}

}  // namespace kiln::cpu
