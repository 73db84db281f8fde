#include "mlir_bridge/kinds/dot/cpu/row_dot.hpp"

#include <functional>
#include <numeric>

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/lane_product.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Rows of the right matrix per step: enough sums to keep the multiply-add units busy with a single row on the left.
constexpr std::int64_t standard_columns = 4;
constexpr std::int64_t item_products = 1 << 16;

// Rows of elements along k, `pitch` elements apart.
struct rows_along_k {
  Value pointer;
  element_type type;
  Value first;
  std::int64_t pitch;
};

// sums[r, c] + the products of left row r and right row c, for as many neighbours as fill the lanes of a sum.
values add_neighbours(code_builder& code, const lane_products& products, const rows_along_k& left, std::int64_t rows,
                      const rows_along_k& right, std::int64_t columns, std::span<const Value> sums) {
  values result(sums.begin(), sums.end());
  const std::int64_t lanes = code_builder::lanes_of(sums[0]);
  const auto factor = [&](const rows_along_k& from, std::int64_t row, bool is_left) {
    const Value at = code.address(from.pointer, code.add(from.first, row * from.pitch), from.type);
    return split_lanes(code, products, load_lanes(code, at, from.type, lanes), is_left);
  };
  std::vector<lane_factor> of_rows;
  for (std::int64_t r = 0; r < rows; ++r) of_rows.push_back(factor(left, r, true));
  for (std::int64_t c = 0; c < columns; ++c) {
    const lane_factor elements = factor(right, c, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      Value& sum = result[static_cast<std::size_t>(r * columns + c)];
      sum = add_lane_products(code, products, of_rows[static_cast<std::size_t>(r)], elements, sum);
    }
  }
  return result;
}

}  // namespace

void emit_row_dot(kernel_emitter& e, const dot_sizes& sizes) {
  code_builder& code = e.code;
  const std::int64_t m = sizes.m, n = sizes.n, k = sizes.k;
  const buffer left = e.materialize(e.anchor()->inputs()[0]), right = e.materialize(e.anchor()->inputs()[1]);
  const element_type accumulation = accumulation_type(left.type);
  const std::int64_t lanes = register_lanes(e, accumulation),
                     batches =
                         std::accumulate(sizes.batch.begin(), sizes.batch.end(), std::int64_t{1}, std::multiplies<>());
  const auto by_lane = find_lane_products(e.target, left.type, right.type);
  const std::int64_t columns_at_once =
      std::clamp<std::int64_t>(choose(e.configuration, "columns", standard_columns), 1, 8);
  const std::int64_t width = std::max<std::int64_t>(
      columns_at_once, item_products / std::max<std::int64_t>(1, m * k) / columns_at_once * columns_at_once);
  const std::int64_t parts = (n + width - 1) / width;

  e.begin_stage("row_dot", batches * parts);
  Value a = e.pointer(left), b = e.pointer(right);
  tile_writer several(e, {1, 1, columns_at_once}, accumulation), one(e, {1, 1, 1}, accumulation);
  code.loop(e.begin(), e.end(), 1, [&](Value item) {
    values digits = code.delinearize(item, std::vector<std::int64_t>{batches, parts});
    Value batch = digits[0], first = code.mul(digits[1], width), last = code.min(code.add(first, width), n);
    Value a_batch = code.mul(batch, m * k), b_batch = code.mul(batch, n * k);
    // Computes columns [column, column + count) of all rows.
    auto columns = [&](Value column, std::int64_t count) {
      Value b_first = code.add(b_batch, code.mul(column, k));
      auto add = [&](Value at, std::int64_t some, std::span<const Value> sums) {
        values result(sums.begin(), sums.end()), rows;
        for (std::int64_t r = 0; r < m; ++r)
          rows.push_back(widen(code, code.load(a, code.add(code.add(a_batch, at), r * k), left.type, some), left.type,
                               accumulation));
        for (std::int64_t c = 0; c < count; ++c) {
          Value elements = widen(code, code.load(b, code.add(code.add(b_first, at), c * k), right.type, some),
                                 right.type, accumulation);
          for (std::int64_t r = 0; r < m; ++r) {
            Value& s = result[static_cast<std::size_t>(r * count + c)];
            s = is_float(accumulation) ? code.fma(rows[static_cast<std::size_t>(r)], elements, s)
                                       : code.add(code.mul(rows[static_cast<std::size_t>(r)], elements), s);
          }
        }
        return result;
      };
      // The same for all neighbours that fill a register's lanes.
      auto add_lanes = [&](Value at, std::span<const Value> sums) {
        return add_neighbours(code, *by_lane, {a, left.type, code.add(a_batch, at), k}, m,
                              {b, right.type, code.add(b_first, at), k}, count, sums);
      };
      const std::int64_t at_once = lanes * neighbours_of(by_lane), even = k / at_once * at_once;
      values sums = code.loop(
          0, even, at_once, values(static_cast<std::size_t>(m * count), code.number(code.type(accumulation, lanes), 0)),
          [&](Value at, std::span<const Value> carried) {
            return by_lane ? add_lanes(at, carried) : add(at, lanes, carried);
          });
      for (Value& s : sums) s = code.horizontal(mlir::vector::CombiningKind::ADD, s);
      sums = code.loop(even, k, 1, sums, [&](Value at, std::span<const Value> carried) { return add(at, 1, carried); });
      for (std::int64_t r = 0; r < m; ++r) {
        tile_place place;
        place.valid_rows = code.constant(1);
        place.rows_always_full = true;
        place.column = column;
        place.locate = [&](Value) {
          values where = code.delinearize(batch, sizes.batch);
          where.push_back(code.constant(r));
          return where;
        };
        (count == 1 ? one : several)
            .write({code.from_lanes(
                       std::span(sums).subspan(static_cast<std::size_t>(r * count), static_cast<std::size_t>(count)))},
                   place);
      }
    };
    Value even = code.add(first, code.mul(code.div(code.sub(last, first), columns_at_once), columns_at_once));
    code.loop(first, even, columns_at_once, [&](Value column) { columns(column, columns_at_once); });
    if (n % columns_at_once) code.loop(even, last, 1, [&](Value column) { columns(column, 1); });
  });
  e.end_stage();
}

}  // namespace kiln::cpu
