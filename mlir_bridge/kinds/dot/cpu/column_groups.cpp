#include "mlir_bridge/kinds/dot/cpu/column_groups.hpp"

#include <algorithm>

#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Multiplications of a work item.
constexpr std::int64_t item_products = 1 << 16;

}  // namespace

void for_column_groups(kernel_emitter& e, const dot_sizes& sizes, const std::string& stage, std::int64_t at_once,
                       const std::function<void(Value column, std::int64_t count, const write_row& write)>& multiply) {
  auto& code = e.code;
  const std::int64_t n = sizes.n, whole = n / at_once * at_once,
                     width = std::max(at_once,
                                      item_products / std::max<std::int64_t>(1, sizes.m * sizes.k) / at_once * at_once);
  e.begin_stage(stage, (n + width - 1) / width);
  e.keep_loops();
  tile_writer several(e, tile_shape{1, 1, at_once}, element_type::f32), one(e, tile_shape{1, 1, 1}, element_type::f32);
  const auto group = [&](Value column, std::int64_t count, tile_writer& writer) {
    multiply(column, count, [&](std::int64_t row, std::span<const Value> totals) {
      tile_place place;
      place.valid_rows = code.constant(1);
      place.rows_always_full = true;
      place.column = column;
      place.locate = [&](Value) {
        values where(sizes.batch.size(), code.constant(0));
        where.push_back(code.constant(row));
        return where;
      };
      writer.write({code.from_lanes(totals)}, place);
    });
  };
  code.loop(e.begin(), e.end(), 1, [&](Value item) {
    const Value first = code.mul(item, width), last = code.min(code.add(first, width), n), even = code.min(last, whole);
    code.loop(first, even, at_once, [&](Value column) { group(column, at_once, several); });
    if (whole < n) code.loop(code.max(first, whole), last, 1, [&](Value column) { group(column, 1, one); });
  });
  e.end_stage();
}

}  // namespace kiln::cpu
