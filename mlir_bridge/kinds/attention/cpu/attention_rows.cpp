#include "mlir_bridge/kinds/attention/cpu/attention_rows.hpp"

#include <limits>

#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr double lowest = -std::numeric_limits<double>::infinity();

}  // namespace

attention_rows::attention_rows(kernel_emitter& emitter)
    : e(emitter),
      code(emitter.code),
      op(*e.anchor()->op().get_if<attention>()),
      query(e.anchor()->inputs()[0]),
      key(e.anchor()->inputs()[1]),
      value_(e.anchor()->inputs()[2]),
      sum_type(accumulation_type(query.type().type)),
      tile(open_tile(e, sum_type)) {
  if (e.anchor()->inputs().size() == 4) mask = e.anchor()->inputs()[3];
  const std::size_t rank = query.type().rank();
  const head_axes of_query(op.query_layout, rank), of_key(op.key_layout, rank);
  batch.assign(query.type().dims.begin(), query.type().dims.end() - 3);
  heads = query.type().dims[of_query.head], key_heads = key.type().dims[of_key.head];
  queries = query.type().dims[of_query.position], keys = key.type().dims[of_key.position];
  depth = query.type().dims.back(), value_depth = value_.type().dims.back();
  padded_keys = (keys + tile.columns() - 1) / tile.columns() * tile.columns();
}

values attention_rows::in_layout(std::span<const Value> head, Value position, Value depth, head_layout layout) {
  values at(head.begin(), head.end());
  at.insert(layout == head_layout::heads_first ? at.end() : at.end() - 1, position);
  at.push_back(depth);
  return at;
}

void attention_rows::begin(std::span<const Value> of_head, Value first, Value count, Value scores_at) {
  head.assign(of_head.begin(), of_head.end());
  group = head;
  if (heads != key_heads) group.back() = code.div(head.back(), heads.value() / key_heads.value());
  first_row = first, row_count = count, scores_begin = scores_at;
  seen = keys_seen(code.add(first_row, code.sub(row_count, 1)));
}

Value attention_rows::score_offset(Value row, Value column) {
  return code.add(code.add(scores_begin, e.mul(row, padded_keys)), column);
}

// Returns the number of keys that a query sees.
Value attention_rows::keys_seen(Value position) {
  if (!op.causal) return e.size(keys);
  return e.min(code.max(e.add(position, keys - queries + 1), 0), keys);
}

// Returns the mask's elements for one query and a vector of keys. Indices beyond the last key are replaced by that of
// the last one.
Value attention_rows::mask_at(Value row, const axis_index& columns) {
  values indices = head;
  indices.push_back(row);
  std::vector<dim> full = batch;
  full.insert(full.end(), {heads, queries, keys});
  const auto& sizes = mask.type().dims;
  position where;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t axis = full.size() - sizes.size() + i;
    axis_index index = axis + 1 == full.size() ? columns : axis_index{indices[axis], 0, {}};
    if (sizes[i] == 1) index = {code.constant(0), 0, {}, 0, 1, codegen::any_multiple};
    // The axis may be broadcast at run time.
    else if (sizes[i] != full[axis]) clamp(index, sizes[i]);
    where.push_back(index);
  }
  evaluator ev(e);
  return ev.at(mask, where, tile.lanes);
}
void attention_rows::clamp(axis_index& index, const dim& size) {
  if (index.each) index.each = e.min(index.each, size - 1);
  else if (index.step == 0) index.base = e.min(index.base, size - 1);
  else
    index = {code.constant(0), 0,
             e.min(code.add(code.splat(index.base, tile.lanes), code.lane_numbers(tile.lanes)), size - 1)};
}

void attention_rows::make_weights(Value row) {
  const Value pointer = e.pointer(scores), query_row = code.add(first_row, row), visible = keys_seen(query_row);
  const Value end = code.mul(code.div(code.add(seen, tile.columns() - 1), tile.columns()), tile.columns());
  const std::int64_t lanes = tile.lanes;
  auto vectors = [&](const values& initial, const code_builder::loop_body& body) {
    return code.loop(code.constant(0), end, lanes, initial, body);
  };
  const Value tops = vectors({number(lowest, lanes)}, [&](Value j, std::span<const Value> top) {
    const Value place = score_offset(row, j), numbers = code.add(code.splat(j, lanes), code.lane_numbers(lanes));
    Value score = code.load(pointer, place, sum_type, lanes);
    if (mask.producer) score = masked(score, query_row, j, numbers);
    score = code.select(code.less(numbers, code.splat(visible, lanes)), score, number(lowest, lanes));
    code.store(pointer, place, sum_type, score);
    return values{code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, score, top[0]), score, top[0])};
  })[0];
  const Value top = code.splat(code.horizontal(mlir::vector::CombiningKind::MAXNUMF, tops), lanes);
  const Value sums = vectors({number(0, lanes)}, [&](Value j, std::span<const Value> sum) {
    const Value place = score_offset(row, j), score = code.load(pointer, place, sum_type, lanes);
    const Value weight = codegen::exponential(code, code.make<arith::SubFOp>(score, top));
    code.store(pointer, place, sum_type, weight);
    return values{code.make<arith::AddFOp>(sum[0], weight)};
  })[0];
  code.store(sums_at, row, sum_type, code.horizontal(mlir::vector::CombiningKind::ADD, sums));
}

Value attention_rows::masked(Value score, Value query_row, Value j, Value numbers) {
  const std::int64_t lanes = tile.lanes;
  auto apply = [&](const axis_index& columns) {
    Value m = mask_at(query_row, columns);
    if (mask.type().type == element_type::boolean) return code.select(m, score, number(lowest, lanes));
    if (m.getType() != score.getType()) m = to_result(code, m, compute_type(mask.type().type), sum_type);
    return code.make<arith::AddFOp>(score, m).getResult();
  };
  if (codegen::known_factor(keys) % lanes == 0) return apply({j, 1, {}});
  return code.branch(
      code.less(e.size(keys), code.add(j, lanes)),
      [&] { return values{apply({code.constant(0), 0, code.min(numbers, code.splat(e.size(keys - 1), lanes))})}; },
      [&] { return values{apply({j, 1, {}})}; })[0];
}

void attention_rows::store_result(Value row, Value column, Value sum, std::int64_t lanes) {
  Value total = code.load(sums_at, row, sum_type, 1);
  // The result without keys is 0.
  if (!codegen::never_negative(keys - 1))
    total = code.select(code.less(code.constant(0), e.size(keys)), total, number(1, 1));
  evaluator ev(e);
  ev.bind(e.anchor_result(), to_result(code, code.make<arith::DivFOp>(sum, code.splat(total, lanes)), sum_type,
                                       e.anchor_result().type().type));
  ev.store_outputs(in_layout(head, code.add(first_row, row), column, op.output_layout), lanes);
}

}  // namespace kiln::cpu
