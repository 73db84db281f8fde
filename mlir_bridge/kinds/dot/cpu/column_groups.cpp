#include "mlir_bridge/kinds/dot/cpu/column_groups.hpp"

#include <algorithm>

#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Multiplications of a work item, and the columns of one whose rows do not fit into a group: it reads the weights again
// for each group, from the first-level cache.
constexpr std::int64_t item_products = 1 << 16, columns_of_many_rows = 16;

}  // namespace

void for_column_groups(kernel_emitter& e, const dot_sizes& sizes, const std::string& stage, std::int64_t rows,
                       std::int64_t columns,
                       const std::function<void(const result_group& group, const write_row& write)>& multiply) {
  auto& code = e.code;
  const std::int64_t m = sizes.m, n = sizes.n, whole = n / columns * columns,
                     least = m > rows ? columns_of_many_rows : columns,
                     width =
                         std::max(least, item_products / std::max<std::int64_t>(1, m * sizes.k) / columns * columns);
  e.begin_stage(stage, (n + width - 1) / width);
  e.keep_loops();
  tile_writer several(e, tile_shape{1, 1, columns}, element_type::f32), one(e, tile_shape{1, 1, 1}, element_type::f32);
  const auto group = [&](const result_group& at) {
    multiply(at, [&](std::int64_t row, std::span<const Value> totals) {
      tile_place place;
      place.valid_rows = code.constant(1);
      place.rows_always_full = true;
      place.column = at.column;
      place.locate = [&](Value) {
        values where(sizes.batch.size(), code.constant(0));
        where.push_back(code.add(at.row, row));
        return where;
      };
      (at.columns == 1 ? one : several).write({code.from_lanes(totals)}, place);
    });
  };
  code.loop(e.begin(), e.end(), 1, [&](Value item) {
    const Value first = code.mul(item, width), last = code.min(code.add(first, width), n), even = code.min(last, whole);
    const auto all_columns = [&](Value row, std::int64_t here) {
      code.loop(first, even, columns, [&](Value column) { group({row, column, here, columns}); });
      if (whole < n) code.loop(code.max(first, whole), last, 1, [&](Value column) { group({row, column, here, 1}); });
    };
    if (m / rows > 1) code.loop(0, m / rows * rows, rows, [&](Value row) { all_columns(row, rows); });
    else if (m / rows == 1) all_columns(code.constant(0), rows);
    if (m % rows) all_columns(code.constant(m / rows * rows), m % rows);
  });
  e.end_stage();
}

}  // namespace kiln::cpu
