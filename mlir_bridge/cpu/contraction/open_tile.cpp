#include "mlir_bridge/cpu/contraction/open_tile.hpp"

#include "mlir_bridge/cpu/contraction/blocking.hpp"

namespace kiln::cpu {

tile_shape open_tile(const kernel_emitter& e, element_type accumulation) {
  return {e.target.vector_registers >= 32 ? 8 : 6, 2, register_lanes(e, accumulation)};
}

values open_sums(code_builder& code, const tile_shape& tile, const open_left& left, const open_right& right,
                 Value steps, element_type accumulation, values sums) {
  return code.loop(code.constant(0), steps, 1, std::move(sums), [&](Value k, std::span<const Value> carried) {
    values next(carried.begin(), carried.end()), columns;
    const Value from = code.add(right.offset, code.mul(k, right.step)), along = code.mul(k, left.step);
    for (std::int64_t v = 0; v < tile.vectors; ++v)
      columns.push_back(widen(code, code.load(right.pointer, code.add(from, v * tile.lanes), right.type, tile.lanes),
                              right.type, accumulation));
    for (std::size_t r = 0; r < left.rows.size(); ++r) {
      const Value scalar = widen(code, code.load(left.rows[r], along, left.type, 1), left.type, accumulation);
      const Value row = code.splat(scalar, tile.lanes);
      for (std::size_t v = 0; v < columns.size(); ++v) {
        Value& sum = next[r * columns.size() + v];
        sum = is_float(accumulation) ? code.fma(row, columns[v], sum) : code.add(code.mul(row, columns[v]), sum);
      }
    }
    return next;
  });
}

open_tile_store::open_tile_store(kernel_emitter& e, const tile_shape& tile, element_type accumulation)
    : e_(e), tile_(tile), type_(accumulation), buffer_(e.code.stack(accumulation, tile.rows * tile.columns())) {}

void open_tile_store::write(std::span<const Value> sums, Value rows, Value columns, bool divides,
                            const row_body& body) const {
  code_builder& code = e_.code;
  for (std::size_t i = 0; i < sums.size(); ++i)
    code.store(buffer_, code.constant(static_cast<std::int64_t>(i) * tile_.lanes), type_, sums[i]);
  code.loop(code.constant(0), rows, 1, [&](Value row) {
    open_span(e_, code.constant(0), columns, tile_.lanes, tile_.lanes, divides).walk([&](const span_part& part) {
      const Value at = code.add(code.mul(row, tile_.columns()), part.first);
      body(row, part, code.load(buffer_, at, type_, part.lanes));
    });
  });
}

}  // namespace kiln::cpu
