// Matrix products on CPUs. Rows of the left matrix are the rows of tiles; batches are groups with separate matrices.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/matrix_tile.hpp"
#include "mlir_bridge/cpu/contraction/packing.hpp"
#include "mlir_bridge/cpu/contraction/wide_factor.hpp"
#include "mlir_bridge/kinds/dot/cpu/row_dot.hpp"
#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"
#include "mlir_bridge/kinds/dot/cpu/unpacked_dot.hpp"
#include "mlir_bridge/kinds/dot/generators.hpp"

namespace kiln::cpu {

namespace {

// With fewer rows, panels are read too few times to pay for packing.
constexpr std::int64_t packing_rows = 4;
// The same limit if there are many right matrices. These are activations, which are packed on every run.
constexpr std::int64_t packing_rows_batched = 48;

struct dot_extents {
  std::vector<std::int64_t> batch;
  std::int64_t m, n, k;
  // The panels are those of a product with this many rows: m, or more if products with more rows read the same panels.
  std::int64_t panel_rows;
  // True for few rows, which have separate generators unless "pack" of the configuration selects this one.
  bool streaming, by_rows;
  // Set for factors that are worth packing in lanes of neighbours.
  std::optional<lane_products> by_lane;
};

dot_extents extents_of(const kernel_emitter& e, const dot& op) {
  const std::vector<std::int64_t> a = e.dims(e.anchor()->inputs()[0]), result = e.dims(e.anchor_result());
  const std::size_t rank = result.size();
  dot_extents x{{result.begin(), result.end() - 2},
                result[rank - 2],
                result[rank - 1],
                a[op.transpose_a ? rank - 2 : rank - 1],
                result[rank - 2],
                false,
                false,
                std::nullopt};
  const value left = e.anchor()->inputs()[0], right = e.anchor()->inputs()[1];
  const bool single = std::ranges::all_of(x.batch, [](std::int64_t d) { return d == 1; });
  if (single && e.only_parameters(right)) x.panel_rows *= choose(e.configuration, "shared_panels", 1);
  const bool shares_panels = x.panel_rows > x.m;
  // Floats of a few rows have generators of their own, which read the right matrix as it is.
  const bool few = is_float(left.type().type) && x.m <= (op.transpose_b ? most_row_dot_rows : most_streaming_rows) &&
                   !shares_panels && choose(e.configuration, "pack", 0) == 0;
  if (e.only_parameters(right) ? (single && !few) || x.m >= packing_rows : x.m >= packing_rows_batched)
    x.by_lane =
        worthwhile(e, find_lane_products(e.target, left.type().type, right.type().type), x.panel_rows, x.n, x.k);
  x.streaming = !x.by_lane && !shares_panels && x.m <= most_streaming_rows && !op.transpose_b;
  x.by_rows =
      !x.by_lane && !shares_panels && x.m <= most_row_dot_rows && op.transpose_b && (!op.transpose_a || x.m == 1);
  return x;
}

// Whether scalars of the left matrix are converted before the products. Processors that take them from the lanes of a
// register convert some at a time; floats of 8 bits take several instructions each.
bool is_wide_first(const kernel_emitter& e, const dot& op, const dot_extents& x) {
  if (x.by_lane) return false;
  const element_type left = e.anchor()->inputs()[0].type().type;
  if (is_float(left) && storage_bits(left) == 8) return true;
  const element_type type = accumulation_type(e.anchor()->inputs()[0].type().type);
  const std::int64_t usual_columns = 2 * register_lanes(e, type);
  return x.n > usual_columns && loads_of(e.target, type, !op.transpose_a).steps == 1;
}

// Copies the left matrices to [batches, m, room] with k innermost, in scratch that a separate stage fills. The k
// elements of each row are followed by zeros.
buffer rows_of_lanes(kernel_emitter& e, value a, const dot_extents& x, bool transposed, std::int64_t room) {
  code_builder& code = e.code;
  const element_type type = a.type().type;
  std::vector<std::int64_t> rows = x.batch;
  rows.push_back(x.m);
  const bool prepare = e.only_parameters(a);
  std::vector<std::int64_t> dims = rows;
  dims.push_back(room);
  const buffer copy = e.add_scratch(type, dims, prepare);
  e.parallel(
      "rows", rows, x.k,
      [&](std::span<const Value> row) {
        Value to = e.pointer(copy), first = code.mul(code.linearize(row, rows), room);
        auto move = [&](Value k, std::int64_t lanes) {
          values where(row.begin(), row.end());
          where.insert(where.end() - (transposed ? 1 : 0), k);
          evaluator ev(e);
          Value elements =
              ev.at(a, ev.along(where, lanes, static_cast<std::int64_t>(rows.size()) - (transposed ? 1 : 0)), lanes);
          code.store(to, code.add(first, k), type, elements);
        };
        const std::int64_t lanes = e.lanes_for(type, x.k), even = x.k / lanes * lanes;
        code.loop(0, even, lanes, [&](Value k) { move(k, lanes); });
        code.loop(even, x.k, 1, [&](Value k) { move(k, 1); });
        code.loop(x.k, room, 1,
                  [&](Value k) { code.store(to, code.add(first, k), type, code.number(code.scalar_type(type), 0)); });
      },
      prepare);
  return copy;
}

// The tile whose rows are multiplied by panels that are as wide as `matrix` or, without it, as suits x.panel_rows rows.
// Rows of the left matrix have room for `room` elements; 0: neighbours along k are apart.
tile_shape tile_of(const kernel_emitter& e, const dot_extents& x, const contraction& c,
                   const std::optional<tile_shape>& matrix, std::int64_t room) {
  const element_type accumulation = accumulation_type(c.left.type);
  const std::int64_t row_bytes = room * static_cast<std::int64_t>(storage_bytes(c.left.type, 1));
  const factor_loads loads = loads_of(e.target, accumulation, room != 0, c.by_lane);
  tile_shape tile = matrix ? *matrix : choose_tile(e, x.panel_rows, x.n, accumulation, row_bytes, loads);
  if (c.matrix) tile.rows = choose_matrix_tile(e, c.by_lane, x.m, x.n, c.steps)->rows;
  else if (x.panel_rows > x.m) tile = choose_tile(e, x.m, x.n, accumulation, row_bytes, loads, tile.columns());
  return tile;
}

}  // namespace

std::vector<candidate> dot_space(kernel_emitter& e) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const dot_extents x = extents_of(e, op);
  const std::int64_t groups = std::accumulate(x.batch.begin(), x.batch.end(), std::int64_t{1}, std::multiplies<>());
  if (groups * x.m * x.n * x.k == 0 || is_unpacked_dot(e, {x.batch, x.m, x.n, x.k})) return {};
  const element_type type = e.anchor()->inputs()[0].type().type;
  std::vector<candidate> result;
  if (x.by_lane) {
    const std::int64_t steps = steps_of(x.by_lane, x.k);
    result = blocking_space(e,
                            {.lines = groups,
                             .rows = x.m,
                             .columns = x.n,
                             .steps = steps,
                             .products = steps,
                             .loads = loads_of(e.target, accumulation_type(type), true, x.by_lane)},
                            type);
    return choose_matrix_tile(e, x.by_lane, x.m, x.n, steps) ? with_matrix_tile(std::move(result)) : result;
  }
  const bool constant = e.only_parameters(e.anchor()->inputs()[1]),
             usually = x.m >= (groups > 1 ? packing_rows_batched : packing_rows);
  for (const candidate& c : blocking_space(e,
                                           {.lines = groups,
                                            .rows = x.m,
                                            .columns = x.n,
                                            .steps = x.k,
                                            .products = x.k,
                                            .loads = loads_of(e.target, accumulation_type(type), !op.transpose_a)},
                                           type)) {
    // Panels are read sequentially. Without them, lines that are far apart are read at the same time. Panels of
    // non-constant matrices are packed on every run.
    const double packing = constant && groups == 1 ? 0 : static_cast<double>(groups * x.n * x.k) / 4;
    for (std::int64_t pack : {1, 0}) {
      if (!pack && op.transpose_b) continue;
      candidate next = c;
      next.cost += pack ? packing : 0.05 * c.cost;
      if (x.streaming || x.by_rows || (!op.transpose_b && pack != usually)) next.configuration["pack"] = pack;
      if (x.streaming && !pack) continue;
      if (x.by_rows && !pack) continue;
      result.push_back(std::move(next));
    }
  }
  // Products of few rows are limited by memory, so other variants cost about the same.
  const double memory = static_cast<double>(groups * x.n * x.k) / 2;
  if (x.streaming) {
    for (std::int64_t lines : {2, 4, 8, 16})
      for (std::int64_t bytes : {4, 8, 16, 32}) result.push_back({{{"lines", lines}, {"sums_kb", bytes}}, memory});
    for (std::int64_t splits : {1, 4, 16})
      for (std::int64_t ahead : {0, 8, 32}) result.push_back({{{"splits", splits}, {"prefetch", ahead}}, memory});
  }
  if (x.by_rows)
    for (std::int64_t columns : {2, 4, 8}) result.push_back({{{"columns", columns}, {"pack", 0}}, memory});
  return result;
}

void emit_dot(kernel_emitter& e) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  const dot_extents x = extents_of(e, op);
  const std::size_t rank = x.batch.size() + 2;
  const std::vector<std::int64_t>& batch_dims = x.batch;
  const std::int64_t m = x.m, n = x.n, k = x.k;

  contraction c;
  c.groups = std::accumulate(batch_dims.begin(), batch_dims.end(), std::int64_t{1}, std::multiplies<>());
  if (c.groups * m * n == 0) return;
  if (is_unpacked_dot(e, {batch_dims, m, n, k})) return emit_unpacked_dot(e, {batch_dims, m, n, k});
  if (x.streaming && choose(e.configuration, "pack", 0) == 0)
    return emit_streaming_dot(e, {batch_dims, m, n, k}, op.transpose_a);
  // Several right matrices are activations, which would be packed again on every run.
  if (x.by_rows && choose(e.configuration, "pack", c.groups == 1) == 0) return emit_row_dot(e, {batch_dims, m, n, k});
  c.by_lane = x.by_lane;
  c.steps = steps_of(c.by_lane, k);
  c.columns = n;
  const std::optional<tile_shape> matrix = choose_matrix_tile(e, c.by_lane, x.panel_rows, n, c.steps);
  if (matrix) c.steps = matrix_steps_of(c.steps);
  // Products of fewer rows that share panels with those of more rows read them with vectors.
  c.matrix = matrix && choose_matrix_tile(e, c.by_lane, m, n, c.steps);
  // Elements of a row of the left matrix, including padding.
  const std::int64_t room = c.steps * neighbours_of(c.by_lane);
  const bool rows_along_k = c.by_lane || !op.transpose_a;
  if (c.by_lane && (op.transpose_a || room != k)) c.left = rows_of_lanes(e, a, x, op.transpose_a, room);
  else c.left = is_wide_first(e, op, x) ? materialize_wide(e, a) : e.materialize(a);
  c.left_group = m * room;
  c.left_step = c.by_lane ? c.by_lane->neighbours : op.transpose_a ? m : 1;
  c.axes = {{.in = m,
             .stride = 1,
             .tap_stride = 1,
             .window = 1,
             .pitch = rows_along_k ? room : 1,
             .phases = {{.outputs = m}}}};
  c.locate = [&e, batch_dims](Value, Value group, std::span<const Value> outputs) {
    values where = e.code.delinearize(group, batch_dims);
    where.push_back(outputs[0]);
    return where;
  };

  const tile_shape tile = tile_of(e, x, c, matrix, rows_along_k ? room : 0);
  c.rows = tile.rows;
  c.unroll = choose(e.configuration, "unroll", 1);
  const bool pack =
      c.by_lane || op.transpose_b ||
      choose(e.configuration, "pack", x.panel_rows >= (c.groups > 1 ? packing_rows_batched : packing_rows));
  if (pack) {
    const right_source source{b, static_cast<std::int64_t>(op.transpose_b ? rank - 2 : rank - 1),
                              [&e, batch_dims, &op](Value group, Value, Value step, Value column) {
                                values where = e.code.delinearize(group, batch_dims);
                                where.push_back(op.transpose_b ? column : step);
                                where.push_back(op.transpose_b ? step : column);
                                return where;
                              }};
    if (c.by_lane) pack_right_lanes(e, c, 1, k, tile, source);
    else pack_right(e, c, 1, tile, source);
  } else {
    c.right = e.materialize(b);
    c.right_group = k * n;
    c.right_step = n;
    c.segments = exact_segments(tile, n);
  }
  choose_items(e, c);
  emit_contraction(e, c);
}

}  // namespace kiln::cpu
