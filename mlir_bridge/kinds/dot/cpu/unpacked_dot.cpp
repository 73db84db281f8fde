#include "mlir_bridge/kinds/dot/cpu/unpacked_dot.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/dot/cpu/block_dot.hpp"
#include "mlir_bridge/kinds/dot/cpu/digit_dot.hpp"
#include "mlir_bridge/kinds/dot/cpu/unpacked_panels.hpp"

namespace kiln::cpu {

namespace {

// Sums in registers: this many rows on the left times columns on the right.
constexpr std::int64_t rows_at_once = 4, columns_at_once = 4;
// Columns that an item unpacks at a time, and depth per step, chosen so that they fit into the first-level cache with
// the rows' part and all sums.
constexpr std::int64_t panel_columns = 16, depth_at_once = 256;
constexpr std::int64_t item_products = 1 << 16;

class unpacked_dot {
 public:
  unpacked_dot(kernel_emitter& emitter, const dot_sizes& sizes)
      : e(emitter),
        code(emitter.code),
        sizes_(sizes),
        weights_(emitter.anchor()->inputs()[1]),
        left_(emitter.materialize(emitter.anchor()->inputs()[0])),
        accumulation_(accumulation_type(left_.type)),
        lanes_(register_lanes(emitter, accumulation_)) {}

  void emit() {
    const bool direct = sizes_.m <= rows_at_once;
    const std::int64_t n = sizes_.n, whole = n / columns_at_once * columns_at_once;
    const std::int64_t width =
        direct ? std::max(columns_at_once, item_products / std::max<std::int64_t>(1, sizes_.m * sizes_.k) /
                                               columns_at_once * columns_at_once)
               : panel_columns;
    e.begin_stage("unpacked_dot", (n + width - 1) / width);
    a_ = e.pointer(left_);
    std::optional<tile_writer> several_writer(std::in_place, e, tile_shape{1, 1, columns_at_once}, accumulation_),
        one_writer(std::in_place, e, tile_shape{1, 1, 1}, accumulation_);
    several_ = &*several_writer, one_ = &*one_writer;
    if (!direct)
      unpacked_ = code.stack(accumulation_, panel_columns * depth_at_once),
      sums_ = code.stack(accumulation_, panel_columns * sizes_.m * lanes_);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      Value first = code.mul(item, width), last = code.min(code.add(first, width), n), even = code.min(last, whole);
      if (direct)
        code.loop(first, even, columns_at_once, [&](Value column) { from_registers(column, columns_at_once); });
      else from_cache(first, even);
      if (whole < n) code.loop(code.max(first, whole), last, 1, [&](Value column) { from_registers(column, 1); });
    });
    e.end_stage();
  }

 private:
  Value weights(evaluator& ev, Value column, Value k) {
    position where(sizes_.batch.size(), axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
    where.push_back({column, 0, {}, 0, sizes_.n, 1});
    where.push_back({k, 1, {}, 0, sizes_.k, lanes_});
    return widen(code, ev.at(weights_, where, lanes_), weights_.type().type, accumulation_);
  }

  Value left(Value row, Value k) {
    return widen(code, code.load(a_, code.add(code.mul(row, sizes_.k), k), left_.type, lanes_), left_.type,
                 accumulation_);
  }

  values zeros(std::int64_t count) {
    return values(static_cast<std::size_t>(count), code.number(code.type(accumulation_, lanes_), 0));
  }

  // sums[r, c] += rows[r] * columns[c]
  void add_products(const values& rows, const values& columns, values& sums) {
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t c = 0; c < columns.size(); ++c)
        sums[r * columns.size() + c] = code.fma(rows[r], columns[c], sums[r * columns.size() + c]);
  }

  void write(Value row, Value column, std::span<const Value> sums) {
    values totals;
    for (Value s : sums) totals.push_back(code.horizontal(mlir::vector::CombiningKind::ADD, s));
    tile_place place;
    place.valid_rows = code.constant(1);
    place.rows_always_full = true;
    place.column = column;
    place.locate = [&](Value) {
      values where(sizes_.batch.size(), code.constant(0));
      where.push_back(row);
      return where;
    };
    (totals.size() == 1 ? *one_ : *several_).write({code.from_lanes(totals)}, place);
  }

  // Computes all rows of `count` columns. Each block of rows unpacks the columns again.
  void from_registers(Value column, std::int64_t count) {
    for (std::int64_t first = 0; first < sizes_.m; first += rows_at_once) {
      const std::int64_t here = std::min(rows_at_once, sizes_.m - first);
      values sums = code.loop(0, sizes_.k, lanes_, zeros(here * count), [&](Value k, std::span<const Value> carried) {
        evaluator ev(e);
        values result(carried.begin(), carried.end()), rows, columns;
        for (std::int64_t r = 0; r < here; ++r) rows.push_back(left(code.constant(first + r), k));
        for (std::int64_t c = 0; c < count; ++c) columns.push_back(weights(ev, code.add(column, c), k));
        add_products(rows, columns, result);
        return result;
      });
      for (std::int64_t r = 0; r < here; ++r)
        write(code.constant(first + r), column,
              std::span(sums).subspan(static_cast<std::size_t>(r * count), static_cast<std::size_t>(count)));
    }
  }

  // Layout of `sums_`: [group of four columns][row][column within the group].
  Value sums_at(Value quad, Value row) {
    return code.mul(code.add(code.mul(quad, sizes_.m), row), columns_at_once * lanes_);
  }

  void from_cache(Value first, Value last) {
    const std::int64_t m = sizes_.m, vectors = columns_at_once * lanes_;
    Value quads = code.div(code.sub(last, first), columns_at_once);
    auto each_row = [&](const std::function<void(Value quad, Value row)>& body) {
      code.loop(code.constant(0), quads, 1,
                [&](Value quad) { code.loop(0, m, 1, [&](Value row) { body(quad, row); }); });
    };
    each_row([&](Value quad, Value row) {
      for (std::int64_t c = 0; c < columns_at_once; ++c)
        code.store(sums_, code.add(sums_at(quad, row), c * lanes_), accumulation_, zeros(1)[0]);
    });
    code.loop(0, sizes_.k, depth_at_once, [&](Value begin) {
      Value depth = code.min(code.sub(code.constant(sizes_.k), begin), depth_at_once);
      code.loop(code.constant(0), quads, 1, [&](Value quad) {
        Value column = code.add(first, code.mul(quad, columns_at_once)),
              to = code.mul(quad, columns_at_once * depth_at_once);
        code.loop(code.constant(0), depth, lanes_, [&](Value k) {
          evaluator ev(e);
          for (std::int64_t c = 0; c < columns_at_once; ++c)
            code.store(unpacked_, code.add(code.add(to, k), c * depth_at_once), accumulation_,
                       weights(ev, code.add(column, c), code.add(begin, k)));
        });
        auto block = [&](Value row, std::int64_t here) {
          Value at = sums_at(quad, row);
          values sums;
          for (std::int64_t i = 0; i < here * columns_at_once; ++i)
            sums.push_back(code.load(sums_, code.add(at, i * lanes_), accumulation_, lanes_));
          sums = code.loop(code.constant(0), depth, lanes_, sums, [&](Value k, std::span<const Value> carried) {
            values result(carried.begin(), carried.end()), rows, columns;
            for (std::int64_t r = 0; r < here; ++r) rows.push_back(left(code.add(row, r), code.add(begin, k)));
            for (std::int64_t c = 0; c < columns_at_once; ++c)
              columns.push_back(
                  code.load(unpacked_, code.add(code.add(to, k), c * depth_at_once), accumulation_, lanes_));
            add_products(rows, columns, result);
            return result;
          });
          for (std::int64_t i = 0; i < here * columns_at_once; ++i)
            code.store(sums_, code.add(at, i * lanes_), accumulation_, sums[static_cast<std::size_t>(i)]);
        };
        const std::int64_t even = m / rows_at_once * rows_at_once;
        code.loop(0, even, rows_at_once, [&](Value row) { block(row, rows_at_once); });
        if (m % rows_at_once) block(code.constant(even), m % rows_at_once);
      });
    });
    each_row([&](Value quad, Value row) {
      values sums;
      for (std::int64_t i = 0; i < vectors; i += lanes_)
        sums.push_back(code.load(sums_, code.add(sums_at(quad, row), i), accumulation_, lanes_));
      write(row, code.add(first, code.mul(quad, columns_at_once)), sums);
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const dot_sizes& sizes_;
  value weights_;
  buffer left_;
  element_type accumulation_;
  std::int64_t lanes_;
  Value a_, unpacked_, sums_;
  tile_writer *several_ = nullptr, *one_ = nullptr;
};

}  // namespace

bool is_unpacked_dot(const kernel_emitter& e, const dot_sizes& sizes) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  const element_type accumulation = accumulation_type(a.type().type);
  const bool one_matrix = std::ranges::all_of(sizes.batch, [](std::int64_t d) { return d == 1; });
  const bool contiguous_rows = !op.transpose_a || sizes.m == 1;
  if (!op.transpose_b || !contiguous_rows || !one_matrix || e.in_memory(b) || !is_float(accumulation)) return false;
  return sizes.k > 0 && sizes.k % register_lanes(e, accumulation) == 0;
}

void emit_unpacked_dot(kernel_emitter& e, const dot_sizes& sizes) {
  if (sizes.m >= least_panel_rows) return emit_unpacked_panels(e, sizes);
  if (const auto weights = find_block_weights(e, sizes)) {
    if (is_digit_dot(e, sizes, *weights)) return emit_digit_dot(e, sizes, *weights);
    if (sizes.m <= most_block_rows) return emit_block_dot(e, sizes, *weights);
  }
  unpacked_dot(e, sizes).emit();
}

}  // namespace kiln::cpu
