#include "mlir_bridge/kinds/attention/cpu/attention_emitter.hpp"

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

buffer attention_emitter::gathered_values(std::int64_t group_count) {
  gathered = op.value_layout == head_layout::sequence_first && n.key_heads > 1 && !direct;
  if (!gathered) return e.materialize(value_);
  buffer made = e.add_scratch(value_.type().type, {group_count, n.keys, n.value_depth});
  e.parallel("values", {group_count, n.keys}, n.value_depth, [&](std::span<const Value> at) {
    values head = code.delinearize(at[0], groups);
    sweep(code.constant(n.value_depth), e.lanes_for(sum_type, n.value_depth), [&](Value d, std::int64_t lanes) {
      evaluator ev(e);
      Value elements = ev.at(value_, ev.along(in_layout(head, at[1], d, op.value_layout), lanes), lanes);
      ev.store(made, ev.along(values{at[0], at[1], d}, lanes), elements);
    });
  });
  return made;
}

buffer attention_emitter::paired_values(std::int64_t group_count) {
  const std::int64_t pairs = steps_of(by_lane, n.keys);
  const element_type type = value_.type().type;
  buffer made = e.add_scratch(element_type::i32, {group_count, pairs, n.value_depth});
  e.parallel("values", {group_count, pairs}, 2 * n.value_depth, [&](std::span<const Value> at) {
    values head = code.delinearize(at[0], groups);
    const Value first = code.mul(at[1], 2), second = code.add(first, 1),
                place = code.mul(code.linearize(at, std::vector<std::int64_t>{group_count, pairs}), n.value_depth);
    sweep(code.constant(n.value_depth), e.lanes_for(sum_type, n.value_depth), [&](Value d, std::int64_t lanes) {
      evaluator ev(e);
      auto bits = [&](Value key) {
        return bits_of(code, ev.at(value_, ev.along(in_layout(head, key, d, op.value_layout), lanes), lanes), type);
      };
      Value high = bits(code.min(second, n.keys - 1));
      if (n.keys % 2)
        high = code.select(code.less(second, code.constant(n.keys)), high, code.integer(high.getType(), 0));
      high = code.make<mlir::arith::ShLIOp>(high, code.integer(high.getType(), 16));
      code.store(e.pointer(made), code.add(place, d), element_type::i32,
                 code.make<mlir::arith::OrIOp>(bits(first), high));
    });
  });
  return made;
}

Value attention_emitter::place_of(std::size_t s, Value column, std::size_t i) {
  auto index = static_cast<std::int64_t>(i);
  return code.add(code.add(at_row(slot, n.value_depth), column),
                  index / segments[s].vectors * n.value_depth + index % segments[s].vectors * segments[s].lanes);
}

void attention_emitter::each_panel(const std::function<void(std::size_t, Value)>& body) {
  for (std::size_t s = 0; s < segments.size(); ++s)
    code.loop(0, segments[s].count, 1, [&](Value panel) {
      body(s, code.add(code.mul(panel, segments[s].columns()), segments[s].first_column));
    });
}

values attention_emitter::kept(std::size_t s, Value column) {
  values all;
  for (std::int64_t i = 0; i < tile.rows * segments[s].vectors; ++i)
    all.push_back(code.load(results, place_of(s, column, static_cast<std::size_t>(i)), sum_type, segments[s].lanes));
  return all;
}

values attention_emitter::weighted_values(std::size_t s, Value column, Value first, Value count, values so_far) {
  if (by_lane) {
    factor left{weights, value_.type().type, weight_pitch(), by_lane->neighbours},
        right{e.pointer(values_at), values_at.type, 0, n.value_depth};
    right.by_lane = by_lane;
    const Value pairs = code.add(code.mul(group, steps_of(by_lane, n.keys)), code.div(first, by_lane->neighbours));
    return accumulate(code, shape_of(s), left, code.constant(0), right,
                      code.add(code.mul(pairs, n.value_depth), column),
                      code.div(code.add(count, 1), by_lane->neighbours), sum_type, std::move(so_far));
  }
  auto [start, pitch] = place_of_group(gathered ? head_layout::heads_first : op.value_layout, n.keys, n.value_depth);
  factor left{scores, sum_type, chunk, 1}, right{e.pointer(values_at), values_at.type, 0, pitch};
  Value from = code.add(code.add(start, code.mul(first, pitch)), column);
  return accumulate(code, shape_of(s), left, code.constant(0), right, from, count, sum_type, std::move(so_far));
}

void attention_emitter::write(std::size_t s, Value column, values all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    Value sum = code.load(sums, code.add(slot, row_of(s, i)), sum_type, 1);
    all[i] = n.keys == 0 ? number(0, segments[s].lanes)
                         : times(all[i], code.splat(code.make<mlir::arith::DivFOp>(number(1), sum), segments[s].lanes));
  }
  tile_place place;
  place.valid_rows = code.min(code.sub(code.constant(rows), first_row), tile.rows);
  place.rows_always_full = rows % tile.rows == 0;
  place.column = column;
  place.locate = [&](Value r) {
    query_row row = row_at(code.add(first_row, r));
    return in_layout(row.head, row.position, {}, op.output_layout);
  };
  writers[s].write(all, place);
}

}  // namespace kiln::cpu
