#include "mlir_bridge/kinds/dot/cpu/unpacked_panels.hpp"

#include <algorithm>
#include <optional>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/cpu/contraction/wide_factor.hpp"

namespace kiln::cpu {

namespace {

// Stack memory of a work item: a piece of its panel, and the sums of its rows.
constexpr std::int64_t panel_bytes = 16 << 10, sums_bytes = 24 << 10;

// Turns a square of numbers: lane c of element r becomes lane r of element c. The number of lanes is a power of two.
// Each round moves the highest bit of an element's number to the lowest place in that of its lane, and the other way
// round.
values turned(code_builder& code, values rows) {
  const auto lanes = static_cast<std::int64_t>(rows.size());
  const std::size_t half = rows.size() / 2;
  for (std::int64_t round = 1; round < lanes; round *= 2) {
    values next;
    for (std::size_t i = 0; i < half; ++i)
      for (std::int64_t first : {std::int64_t{0}, lanes / 2}) {
        llvm::SmallVector<std::int64_t> order;
        for (std::int64_t lane = first; lane < first + lanes / 2; ++lane) order.append({lane, lanes + lane});
        next.push_back(code.make<mlir::vector::ShuffleOp>(rows[i], rows[i + half], order));
      }
    rows = std::move(next);
  }
  return rows;
}

class unpacked_panels {
 public:
  unpacked_panels(kernel_emitter& emitter, const dot_sizes& sizes)
      : e(emitter),
        code(emitter.code),
        sizes_(sizes),
        weights_(emitter.anchor()->inputs()[1]),
        rows_(materialize_wide(emitter, emitter.anchor()->inputs()[0])),
        accumulation_(accumulation_type(rows_.type)),
        tile_(choose_tile(emitter, sizes.m, sizes.n, accumulation_,
                          sizes.k * static_cast<std::int64_t>(storage_bytes(rows_.type, 1)),
                          loads_of(emitter.target, accumulation_, true))) {}

  void emit() {
    const std::int64_t width = tile_.columns(), panels = (sizes_.n + width - 1) / width;
    const std::int64_t line = width * static_cast<std::int64_t>(storage_bytes(accumulation_, 1)),
                       depth_at_once = panel_bytes / line / tile_.lanes * tile_.lanes;
    const std::int64_t tiles = (sizes_.m + tile_.rows - 1) / tile_.rows,
                       most_tiles = std::max<std::int64_t>(1, sums_bytes / line / tile_.rows),
                       parts = (tiles + most_tiles - 1) / most_tiles, tiles_of_item = (tiles + parts - 1) / parts;
    e.begin_stage("unpacked_dot", panels * parts);
    e.keep_loops();
    left_ = {e.pointer(rows_), rows_.type, sizes_.k, 1};
    left_.steps_of_load = loads_of(e.target, accumulation_, true).steps;
    right_ = {code.stack(accumulation_, depth_at_once * width), accumulation_, 0, width};
    sums_ = code.stack(accumulation_, tiles_of_item * tile_.rows * width);
    tile_writer writer(e, tile_, accumulation_);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      const Value panel = code.div(item, parts), first = code.mul(code.rem(item, parts), tiles_of_item),
                  last = code.min(code.add(first, tiles_of_item), tiles);
      first_column_ = code.mul(panel, width);
      const auto each_tile = [&](const std::function<void(Value tile, Value at)>& body) {
        code.loop(first, last, 1, [&](Value tile) { body(tile, code.mul(code.sub(tile, first), tile_.rows * width)); });
      };
      const values zeros = zero_tile(code, tile_, accumulation_);
      each_tile([&](Value, Value at) { keep(zeros, at); });
      const auto piece = [&](Value k, std::int64_t depth) {
        unpack(k, depth);
        each_tile([&](Value tile, Value at) { keep(with_products(tile, k, depth, kept(at)), at); });
      };
      const std::int64_t whole = sizes_.k / depth_at_once * depth_at_once;
      code.loop(0, whole, depth_at_once, [&](Value k) { piece(k, depth_at_once); });
      if (whole < sizes_.k) piece(code.constant(whole), sizes_.k - whole);
      each_tile([&](Value tile, Value at) { writer.write(kept(at), place_of(tile, panel, panels)); });
    });
    e.end_stage();
  }

 private:
  void keep(const values& sums, Value at) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      code.store(sums_, code.add(at, static_cast<std::int64_t>(i) * tile_.lanes), accumulation_, sums[i]);
  }

  values kept(Value at) {
    values sums;
    for (std::int64_t i = 0; i < tile_.rows * tile_.vectors; ++i)
      sums.push_back(code.load(sums_, code.add(at, i * tile_.lanes), accumulation_, tile_.lanes));
    return sums;
  }

  // Fills right_ with steps [k, k + depth) of the panel. Columns after the last one are copies of it.
  void unpack(Value k, std::int64_t depth) {
    code.loop(0, tile_.vectors, 1, [&](Value vector) {
      code.loop(0, depth, tile_.lanes, [&](Value step) {
        evaluator ev(e);
        values columns;
        for (std::int64_t c = 0; c < tile_.lanes; ++c) {
          const Value column = code.add(code.add(first_column_, code.mul(vector, tile_.lanes)), c);
          position where(sizes_.batch.size(), axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
          where.push_back(
              {sizes_.n % tile_.columns() ? code.min(column, sizes_.n - 1) : column, 0, {}, 0, sizes_.n, 1});
          where.push_back({code.add(k, step), 1, {}, 0, sizes_.k, tile_.lanes});
          columns.push_back(widen(code, ev.at(weights_, where, tile_.lanes), weights_.type().type, accumulation_));
        }
        const values steps = turned(code, std::move(columns));
        for (std::size_t i = 0; i < steps.size(); ++i)
          code.store(right_.pointer,
                     code.add(code.mul(code.add(step, static_cast<std::int64_t>(i)), tile_.columns()),
                              code.mul(vector, tile_.lanes)),
                     accumulation_, steps[i]);
      });
    });
  }

  values with_products(Value tile, Value k, std::int64_t depth, const values& sums) {
    const Value row = code.mul(tile, tile_.rows), left = code.add(code.mul(row, sizes_.k), k);
    const auto of_rows = [&](std::int64_t rows) {
      return accumulate(code, tile_, {0, rows}, left_, left, right_, code.constant(0), depth, 1, accumulation_, sums);
    };
    const std::int64_t rest = sizes_.m % tile_.rows;
    if (rest == 0) return of_rows(tile_.rows);
    return code.branch(
        code.less(code.add(row, tile_.rows - 1), code.constant(sizes_.m)), [&] { return of_rows(tile_.rows); },
        [&] { return of_rows(rest); });
  }

  tile_place place_of(Value tile, Value panel, std::int64_t panels) {
    const Value row = code.mul(tile, tile_.rows);
    tile_place place;
    place.valid_rows = code.min(code.sub(code.constant(sizes_.m), row), tile_.rows);
    place.rows_always_full = sizes_.m % tile_.rows == 0;
    place.column = first_column_;
    place.last_columns = sizes_.n % tile_.columns();
    if (place.last_columns) place.in_last_panel = code.equal(panel, code.constant(panels - 1));
    place.locate = [this, row](Value of_tile) {
      values where(sizes_.batch.size(), code.constant(0));
      where.push_back(code.add(row, of_tile));
      return where;
    };
    return place;
  }

  kernel_emitter& e;
  code_builder& code;
  const dot_sizes& sizes_;
  value weights_;
  buffer rows_;
  element_type accumulation_;
  tile_shape tile_;
  factor left_, right_;
  Value sums_, first_column_;
};

}  // namespace

void emit_unpacked_panels(kernel_emitter& e, const dot_sizes& sizes) { unpacked_panels(e, sizes).emit(); }

}  // namespace kiln::cpu
