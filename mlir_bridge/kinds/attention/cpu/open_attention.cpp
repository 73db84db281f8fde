// attention of open lengths. Keys and values are packed in panels. A work item computes a block of query rows of one
// head: the scores for all keys, which stay in the second-level cache, their weights, and the weighted values.
#include <cmath>
#include <limits>

#include "ir/ops/attention.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/attention/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t tiles_per_item = 4;
constexpr double lowest = -std::numeric_limits<double>::infinity();

class open_attention {
 public:
  explicit open_attention(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<attention>()),
        query(e.anchor()->inputs()[0]),
        key(e.anchor()->inputs()[1]),
        value_(e.anchor()->inputs()[2]),
        sum_type(accumulation_type(query.type().type)),
        tile(open_tile(e, sum_type)),
        value_tile(tile) {
    const std::size_t rank = query.type().rank();
    const head_axes of_query(op.query_layout, rank), of_key(op.key_layout, rank);
    batch.assign(query.type().dims.begin(), query.type().dims.end() - 3);
    heads = query.type().dims[of_query.head], key_heads = key.type().dims[of_key.head];
    queries = query.type().dims[of_query.position], keys = key.type().dims[of_key.position];
    depth = query.type().dims.back(), value_depth = value_.type().dims.back();
    // If possible, use vectors that divide the depth of the values.
    if (const std::int64_t factor = codegen::known_factor(value_depth); factor > 0) {
      value_tile.lanes = std::min(tile.lanes, std::max<std::int64_t>(factor & -factor, 4));
      value_tile.vectors = factor % (2 * value_tile.lanes) == 0 ? 2 : 1;
    }
    rows_per_item = tile.rows * tiles_per_item;
  }

  void emit() {
    queries_at = e.materialize(query);
    if (e.anchor()->inputs().size() == 4) mask = e.anchor()->inputs()[3], e.materialize(mask);
    std::vector<dim> groups = batch, items = batch;
    groups.push_back(key_heads);
    items.insert(items.end(), {heads, (queries + rows_per_item - 1) / rows_per_item});
    const head_axes of_key(op.key_layout, key.type().rank());
    const open_panels key_panels(e,
                                 {key, groups, keys, depth, of_key.position,
                                  [this](std::span<const Value> group, Value step, Value column) {
                                    return in_layout(group, column, step, op.key_layout);
                                  }},
                                 tile);
    const open_panels value_panels(e,
                                   {value_, groups, value_depth, keys, value_.type().rank() - 1,
                                    [this](std::span<const Value> group, Value step, Value column) {
                                      return in_layout(group, step, column, op.value_layout);
                                    }},
                                   value_tile);
    // A row of scores is padded to whole panels.
    std::vector<dim> room = items;
    room.insert(room.end(), {rows_per_item, key_panels.count() * tile.columns()});
    scores = e.add_open_scratch(sum_type, room);
    e.parallel_open("attention", items,
                    rows_per_item * usual_size(keys) * (usual_size(depth) + usual_size(value_depth)) / tile.lanes,
                    [&](std::span<const Value> at) { emit_item(at, key_panels, value_panels); });
  }

 private:
  // Maps [batch..., head], a position and a depth to the indices of a tensor in this layout.
  static values in_layout(std::span<const Value> head, Value position, Value depth, head_layout layout) {
    values at(head.begin(), head.end());
    at.insert(layout == head_layout::heads_first ? at.end() : at.end() - 1, position);
    at.push_back(depth);
    return at;
  }
  Value number(double v, std::int64_t lanes) { return code.number(code.type(sum_type, lanes), v); }
  Value times(Value x, Value y) { return code.make<arith::MulFOp>(x, y); }

  // `at` is batch..., head, block of rows.
  void emit_item(std::span<const Value> at, const open_panels& key_panels, const open_panels& value_panels) {
    head.assign(at.begin(), at.end() - 1);
    group = head;
    if (heads != key_heads) group.back() = code.div(head.back(), heads.value() / key_heads.value());
    first_row = code.mul(at.back(), rows_per_item);
    row_count = code.min(code.sub(e.size(queries), first_row), rows_per_item);
    scores_begin = offset_in(e, scores, at);
    seen = keys_seen(code.add(first_row, code.sub(row_count, 1)));
    const Value tiles = code.div(code.add(row_count, tile.rows - 1), tile.rows);
    sums_at = code.stack(sum_type, rows_per_item);
    make_scores(key_panels, tiles);
    code.loop(code.constant(0), row_count, 1, [&](Value row) { make_weights(row); });
    write_results(value_panels, tiles);
  }

  // Returns the number of keys that a query sees.
  Value keys_seen(Value position) {
    if (!op.causal) return e.size(keys);
    return e.min(code.max(e.add(position, keys - queries + 1), 0), keys);
  }
  Value score_offset(Value row, Value column) {
    return code.add(code.add(scores_begin, e.mul(row, scores.sizes.back())), column);
  }

  // scores[row, j] = scale * query . key. Includes the copies of the last key that fill its panel.
  void make_scores(const open_panels& panels, Value tiles) {
    const Value pointer = e.pointer(scores), count = code.div(code.add(seen, tile.columns() - 1), tile.columns());
    code.loop(code.constant(0), count, 1, [&](Value panel) {
      code.loop(code.constant(0), tiles, 1, [&](Value t) {
        const Value row = code.mul(t, tile.rows);
        open_left left{queries_at.type, {}, code.constant(1)};
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          const Value position = e.min(code.add(code.add(first_row, row), r), queries - 1);
          const values at = in_layout(head, position, code.constant(0), op.query_layout);
          left.rows.push_back(code.address(e.pointer(queries_at), offset_in(e, queries_at, at), queries_at.type));
        }
        const values sums = open_sums(code, tile, left, panels.panel(group, panel), e.size(depth), sum_type,
                                      zero_tile(code, tile, sum_type));
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const auto r = static_cast<std::int64_t>(i) / tile.vectors, v = static_cast<std::int64_t>(i) % tile.vectors;
          const Value column = code.add(code.mul(panel, tile.columns()), v * tile.lanes);
          code.store(pointer, score_offset(code.add(row, r), column), sum_type,
                     times(sums[i], number(op.scale, tile.lanes)));
        }
      });
    });
  }

  // Returns the mask's elements for one query and a vector of keys. Indices beyond the last key are replaced by that of
  // the last one.
  Value mask_at(Value row, const axis_index& columns) {
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
  void clamp(axis_index& index, const dim& size) {
    if (index.each) index.each = e.min(index.each, size - 1);
    else if (index.step == 0) index.base = e.min(index.base, size - 1);
    else
      index = {code.constant(0), 0,
               e.min(code.add(code.splat(index.base, tile.lanes), code.lane_numbers(tile.lanes)), size - 1)};
  }

  // Converts the scores of a row to exp(score - maximum) and stores their sum.
  void make_weights(Value row) {
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

  Value masked(Value score, Value query_row, Value j, Value numbers) {
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

  void write_results(const open_panels& panels, Value tiles) {
    const open_tile_store store(e, value_tile, sum_type);
    code.loop(code.constant(0), e.size(panels.count()), 1, [&](Value panel) {
      code.loop(code.constant(0), tiles, 1, [&](Value t) {
        const Value row = code.mul(t, tile.rows), first_column = code.mul(panel, value_tile.columns());
        open_left left{sum_type, {}, code.constant(1)};
        for (std::int64_t r = 0; r < tile.rows; ++r)
          left.rows.push_back(code.address(
              e.pointer(scores), score_offset(code.min(code.add(row, r), code.sub(row_count, 1)), code.constant(0)),
              sum_type));
        const values sums = open_sums(code, value_tile, left, panels.panel(group, panel), seen, sum_type,
                                      zero_tile(code, value_tile, sum_type));
        const Value rows = code.min(code.sub(row_count, row), tile.rows),
                    columns = code.min(code.sub(e.size(value_depth), first_column), value_tile.columns());
        store.write(sums, rows, columns, panels.whole(), [&](Value r, const span_part& part, Value computed) {
          const Value at = code.add(row, r);
          const Value sum = code.load(sums_at, at, sum_type, 1);
          evaluator ev(e);
          ev.bind(e.anchor_result(), to_result(code, code.make<arith::DivFOp>(computed, code.splat(sum, part.lanes)),
                                               sum_type, e.anchor_result().type().type));
          ev.store_outputs(
              in_layout(head, code.add(first_row, at), code.add(first_column, part.first), op.output_layout),
              part.lanes);
        });
      });
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const attention& op;
  value query, key, value_, mask{};
  element_type sum_type;
  tile_shape tile, value_tile;
  std::vector<dim> batch;
  dim heads, key_heads, queries, keys, depth, value_depth;
  std::int64_t rows_per_item = 1;
  buffer queries_at, scores;
  // Indices of the current work item.
  values head, group;
  Value first_row, row_count, seen, scores_begin, sums_at;
};

}  // namespace

void emit_open_attention(kernel_emitter& e) { open_attention(e).emit(); }

}  // namespace kiln::cpu
