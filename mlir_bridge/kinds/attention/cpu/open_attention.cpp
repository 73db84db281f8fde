// attention of open lengths. Keys and values are packed in panels. A work item computes a block of query rows of one
// head: the scores for all keys, which stay in the second-level cache, their weights, and the weighted values. For few
// queries these stages have no work items, and that of few_queries.cpp has some.
#include "ir/prefix_mask.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/attention/cpu/attention_rows.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t tiles_per_item = 4;

class open_attention {
 public:
  explicit open_attention(attention_rows& of)
      : rows(of),
        e(of.e),
        code(of.code),
        tile(of.tile),
        value_tile(of.tile),
        rows_per_item(tile.rows * tiles_per_item) {
    // If possible, use vectors that divide the depth of the values.
    if (const std::int64_t factor = codegen::known_factor(rows.value_depth); factor > 0) {
      value_tile.lanes = std::min(tile.lanes, std::max<std::int64_t>(factor & -factor, 4));
      value_tile.vectors = factor % (2 * value_tile.lanes) == 0 ? 2 : 1;
    }
  }

  // `used` is 1 where the stages have work to do, else 0.
  void emit(const dim& used) {
    queries_at = e.materialize(rows.query);
    std::vector<dim> groups = rows.batch, items = rows.batch;
    groups.push_back(rows.key_heads);
    items.insert(items.end(), {rows.heads, (rows.queries + rows_per_item - 1) / rows_per_item * used});
    const head_axes of_key(rows.op.key_layout, rows.key.type().rank());
    const open_panels key_panels(e,
                                 {rows.key, groups, rows.keys, rows.depth, of_key.position,
                                  [this](std::span<const Value> group, Value step, Value column) {
                                    return rows.in_layout(group, column, step, rows.op.key_layout);
                                  },
                                  used},
                                 tile);
    const open_panels value_panels(e,
                                   {rows.value_, groups, rows.value_depth, rows.keys, rows.value_.type().rank() - 1,
                                    [this](std::span<const Value> group, Value step, Value column) {
                                      return rows.in_layout(group, step, column, rows.op.value_layout);
                                    },
                                    used},
                                   value_tile);
    std::vector<dim> room = items;
    room.insert(room.end(), {rows_per_item, rows.padded_keys});
    rows.scores = e.add_open_scratch(rows.sum_type, room);
    e.parallel_open(
        "attention", items,
        rows_per_item * usual_size(rows.keys) * (usual_size(rows.depth) + usual_size(rows.value_depth)) / tile.lanes,
        [&](std::span<const Value> at) { emit_item(at, key_panels, value_panels); });
  }

 private:
  // `at` is batch..., head, block of rows.
  void emit_item(std::span<const Value> at, const open_panels& key_panels, const open_panels& value_panels) {
    const Value first = code.mul(at.back(), rows_per_item);
    rows.begin(at.first(at.size() - 1), first, code.min(code.sub(e.size(rows.queries), first), rows_per_item),
               offset_in(e, rows.scores, at));
    const Value tiles = code.div(code.add(rows.row_count, tile.rows - 1), tile.rows);
    rows.sums_at = code.stack(rows.sum_type, rows_per_item);
    make_scores(key_panels, tiles);
    code.loop(code.constant(0), rows.row_count, 1, [&](Value row) { rows.make_weights(row); });
    write_results(value_panels, tiles);
  }

  // scores[row, j] = scale * query . key. Includes the copies of the last key that fill its panel.
  void make_scores(const open_panels& panels, Value tiles) {
    const Value pointer = e.pointer(rows.scores),
                count = code.div(code.add(rows.seen, tile.columns() - 1), tile.columns());
    code.loop(code.constant(0), count, 1, [&](Value panel) {
      code.loop(code.constant(0), tiles, 1, [&](Value t) {
        const Value row = code.mul(t, tile.rows);
        open_left left{queries_at.type, {}, code.constant(1)};
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          const Value position = e.min(code.add(code.add(rows.first_row, row), r), rows.queries - 1);
          const values at = rows.in_layout(rows.head, position, code.constant(0), rows.op.query_layout);
          left.rows.push_back(code.address(e.pointer(queries_at), offset_in(e, queries_at, at), queries_at.type));
        }
        const values sums = open_sums(code, tile, left, panels.panel(rows.group, panel), e.size(rows.depth),
                                      rows.sum_type, zero_tile(code, tile, rows.sum_type));
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const auto r = static_cast<std::int64_t>(i) / tile.vectors, v = static_cast<std::int64_t>(i) % tile.vectors;
          const Value column = code.add(code.mul(panel, tile.columns()), v * tile.lanes);
          code.store(
              pointer, rows.score_offset(code.add(row, r), column), rows.sum_type,
              code.make<arith::MulFOp>(sums[i], code.number(code.type(rows.sum_type, tile.lanes), rows.op.scale)));
        }
      });
    });
  }

  void write_results(const open_panels& panels, Value tiles) {
    const open_tile_store store(e, value_tile, rows.sum_type);
    code.loop(code.constant(0), e.size(panels.count()), 1, [&](Value panel) {
      code.loop(code.constant(0), tiles, 1, [&](Value t) {
        const Value row = code.mul(t, tile.rows), first_column = code.mul(panel, value_tile.columns());
        open_left left{rows.sum_type, {}, code.constant(1)};
        for (std::int64_t r = 0; r < tile.rows; ++r)
          left.rows.push_back(
              code.address(e.pointer(rows.scores),
                           rows.score_offset(code.min(code.add(row, r), code.sub(rows.row_count, 1)), code.constant(0)),
                           rows.sum_type));
        const values sums = open_sums(code, value_tile, left, panels.panel(rows.group, panel), rows.seen, rows.sum_type,
                                      zero_tile(code, value_tile, rows.sum_type));
        const Value valid = code.min(code.sub(rows.row_count, row), tile.rows),
                    columns = code.min(code.sub(e.size(rows.value_depth), first_column), value_tile.columns());
        store.write(sums, valid, columns, panels.whole(), [&](Value r, const span_part& part, Value computed) {
          rows.store_result(code.add(row, r), code.add(first_column, part.first), computed, part.lanes);
        });
      });
    });
  }

  attention_rows& rows;
  kernel_emitter& e;
  code_builder& code;
  tile_shape tile, value_tile;
  std::int64_t rows_per_item;
  buffer queries_at;
};

}  // namespace

void emit_open_attention(kernel_emitter& e) {
  attention_rows rows(e);
  if (rows.mask.producer && !find_prefix_mask(rows.mask)) e.materialize(rows.mask);
  const bool direct = reads_keys_directly(rows);
  if (const dim many = direct ? 1 - is_few(rows.queries) : dim(1); !(many == dim(0))) open_attention(rows).emit(many);
  if (direct && !(is_few(rows.queries) == dim(0))) emit_few_queries(rows);
}

}  // namespace kiln::cpu
