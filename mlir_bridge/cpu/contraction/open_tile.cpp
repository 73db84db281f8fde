#include "mlir_bridge/cpu/contraction/open_tile.hpp"

#include <algorithm>

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/factor_loads.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

tile_shape open_tile(const kernel_emitter& e, element_type accumulation) {
  return {e.target.vector_registers >= 32 ? 8 : 6, 2, register_lanes(e, accumulation)};
}

tile_shape open_tile(const kernel_emitter& e, element_type accumulation, std::int64_t columns,
                     const std::optional<lane_products>& by_lane) {
  // The number of rows is open. With many rows, tiles chosen for this number leave few rows over.
  constexpr std::int64_t usual_rows = 24;
  return choose_tile(e, usual_rows, columns, accumulation, 0, loads_of(e.target, accumulation, false, by_lane));
}

namespace {

// One step of open_sums() for factors whose neighbours share lanes.
values add_lanes(code_builder& code, const tile_shape& tile, const open_left& left, const open_right& right,
                 Value along, Value from, values sums) {
  const lane_products& products = *right.by_lane;
  std::vector<lane_factor> columns;
  for (std::int64_t v = 0; v < tile.vectors; ++v)
    columns.push_back(split_lanes(
        code, products, code.load(right.pointer, code.add(from, v * tile.lanes), right.type, tile.lanes), false));
  for (std::size_t r = 0; r < left.rows.size(); ++r) {
    const Value lane = load_lanes(code, code.address(left.rows[r], along, left.type), left.type);
    const lane_factor row = split_lanes(code, products, code.splat(lane, tile.lanes), true);
    for (std::size_t v = 0; v < columns.size(); ++v) {
      Value& sum = sums[r * columns.size() + v];
      sum = add_lane_products(code, products, row, columns[v], sum);
    }
  }
  return sums;
}

}  // namespace

values open_sums(code_builder& code, const tile_shape& tile, const open_left& left, const open_right& right,
                 Value steps, element_type accumulation, values sums) {
  return code.loop(code.constant(0), steps, 1, std::move(sums), [&](Value k, std::span<const Value> carried) {
    values next(carried.begin(), carried.end()), columns;
    const Value from = code.add(right.offset, code.mul(k, right.step)), along = code.mul(k, left.step);
    if (right.by_lane) return add_lanes(code, tile, left, right, along, from, std::move(next));
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

open_tile_store::open_tile_store(kernel_emitter& e, const tile_shape& tile, element_type accumulation,
                                 std::int64_t columns)
    : e_(e),
      tile_(tile),
      type_(accumulation),
      columns_(columns),
      light_(epilogue_cost(e) <= light_epilogue),
      buffer_(e.code.stack(accumulation, tile.rows * tile.columns())) {}

void open_tile_store::write(std::span<const Value> sums, Value rows, Value columns, bool divides, const row_body& body,
                            const std::function<void()>& before) const {
  code_builder& code = e_.code;
  const auto through_memory = [&] {
    if (before) before();
    write_memory(sums, rows, columns, divides, body);
    return values{};
  };
  if (!light_) {
    through_memory();
    return;
  }
  const auto all_rows = static_cast<std::int64_t>(sums.size()) / tile_.vectors;
  const Value whole_rows = code.equal(rows, code.constant(all_rows)),
              whole_columns = code.equal(columns, code.constant(tile_.columns()));
  code.branch(
      code.make<mlir::arith::AndIOp>(whole_rows, whole_columns),
      [&] {
        write_registers(sums, body);
        return values{};
      },
      through_memory);
}

void open_tile_store::write_registers(std::span<const Value> sums, const row_body& body) const {
  code_builder& code = e_.code;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / tile_.vectors, v = static_cast<std::int64_t>(i) % tile_.vectors;
    body(code.constant(row), {code.constant(v * tile_.lanes), tile_.lanes, tile_.lanes}, sums[i]);
  }
}

void open_tile_store::write_memory(std::span<const Value> sums, Value rows, Value columns, bool divides,
                                   const row_body& body) const {
  code_builder& code = e_.code;
  for (std::size_t i = 0; i < sums.size(); ++i)
    code.store(buffer_, code.constant(static_cast<std::int64_t>(i) * tile_.lanes), type_, sums[i]);
  code.loop(code.constant(0), rows, 1, [&](Value row) {
    walk(columns, divides, [&](const span_part& part) {
      const Value at = code.add(code.mul(row, tile_.columns()), part.first);
      body(row, part, code.load(buffer_, at, type_, part.lanes));
    });
  });
}

void open_tile_store::walk(Value columns, bool divides, const std::function<void(const span_part&)>& visit) const {
  code_builder& code = e_.code;
  const std::int64_t lanes = tile_.lanes, last = columns_ % tile_.columns();  // of the last panel
  if (last % lanes == 0 && columns_ != 0) divides = true;
  if (columns_ == 0 || divides) return open_span(e_, code.constant(0), columns, lanes, lanes, divides).walk(visit);
  // The known rest is written with ever shorter vectors.
  code.loop(code.constant(0), code.mul(code.div(columns, lanes), lanes), lanes,
            [&](Value first) { visit({first, lanes, lanes}); });
  code.when(code.less(columns, code.constant(tile_.columns())), [&] {
    std::int64_t done = last / lanes * lanes;
    for (std::int64_t part = lanes / 2; part; part /= 2) {
      if (!((last - done) & part)) continue;
      visit({code.constant(done), part, part});
      done += part;
    }
  });
}

}  // namespace kiln::cpu
