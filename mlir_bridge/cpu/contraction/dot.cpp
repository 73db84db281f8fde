// dot: rows of the left matrix are rows of tiles, batches are groups with matrices of their own.
#include <functional>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/packing.hpp"
#include "mlir_bridge/cpu/contraction/row_dot.hpp"
#include "mlir_bridge/cpu/contraction/streaming_dot.hpp"

namespace kiln::cpu {

namespace {

// Below this many rows the panels would be read too few times to pay for making them.
constexpr std::int64_t packing_rows = 4;
// The same where there are many right matrices, which are activations then and packed again on every run.
constexpr std::int64_t packing_rows_batched = 48;

}  // namespace

void emit_dot(kernel_emitter& e) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  const std::vector<std::int64_t> a_dims = e.dims(a), result_dims = e.dims(e.anchor_result());
  const std::size_t rank = result_dims.size();
  const std::vector<std::int64_t> batch_dims(result_dims.begin(), result_dims.end() - 2);
  const std::int64_t m = result_dims[rank - 2], n = result_dims[rank - 1], k = a_dims[op.transpose_a ? rank - 2 : rank - 1];

  contraction c;
  c.groups = std::accumulate(batch_dims.begin(), batch_dims.end(), std::int64_t{1}, std::multiplies<>());
  if (c.groups * m * n == 0) return;
  if (m <= most_streaming_rows && !op.transpose_b && choose(e.configuration, "pack", 0) == 0) return emit_streaming_dot(e, {batch_dims, m, n, k}, op.transpose_a);
  // Several right matrices are activations, which would be packed again on every run.
  const bool contiguous_rows = !op.transpose_a || m == 1;
  if (m <= most_row_dot_rows && op.transpose_b && contiguous_rows && choose(e.configuration, "pack", c.groups == 1) == 0) return emit_row_dot(e, {batch_dims, m, n, k});
  c.steps = k;
  c.columns = n;
  c.left = e.materialize(a);
  c.left_group = m * k;
  c.left_step = op.transpose_a ? m : 1;
  c.axes = {{.in = m, .stride = 1, .tap_stride = 1, .window = 1, .pitch = op.transpose_a ? 1 : k, .phases = {{.outputs = m}}}};
  c.locate = [&e, batch_dims](Value, Value group, std::span<const Value> outputs) {
    values where = e.code.delinearize(group, batch_dims);
    where.push_back(outputs[0]);
    return where;
  };

  const element_type accumulation = accumulation_type(a.type().type);
  const tile_shape tile = choose_tile(e, m, n, accumulation);
  c.rows = tile.rows;
  c.unroll = choose(e.configuration, "unroll", 1);
  const bool pack = op.transpose_b || choose(e.configuration, "pack", m >= (c.groups > 1 ? packing_rows_batched : packing_rows));
  if (pack) {
    pack_right(e, c, 1, tile, {b, static_cast<std::int64_t>(op.transpose_b ? rank - 2 : rank - 1), [&e, batch_dims, &op](Value group, Value, Value step, Value column) {
                                 values where = e.code.delinearize(group, batch_dims);
                                 where.push_back(op.transpose_b ? column : step);
                                 where.push_back(op.transpose_b ? step : column);
                                 return where;
                               }});
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
