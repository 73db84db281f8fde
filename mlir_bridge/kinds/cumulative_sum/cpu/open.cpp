// cumulative_sum of open sizes.
#include "ir/ops/all.hpp"
#include "mlir_bridge/cpu/open_rows.hpp"
#include "mlir_bridge/kinds/cumulative_sum/cpu/running_sum.hpp"
#include "mlir_bridge/kinds/cumulative_sum/generators.hpp"

namespace kiln::cpu {

void emit_open_cumulative_sum(kernel_emitter& e) {
  constexpr std::int64_t cost = 4;
  const value input = e.anchor()->inputs()[0];
  const std::int64_t axis = normalize_axis(e.anchor()->op().get_if<cumulative_sum>()->axis, input.type().rank());
  const open_rows rows(e, input, {axis}, running_sum_type(input.type().type));
  if (rows.inner)
    rows.parallel_rows("cumulative_sum", cost,
                       [&](std::span<const Value> at) { emit_running_sum(e, rows.start(at), 1); });
  else
    rows.parallel_columns("cumulative_sum", cost,
                          [&](const position& column, std::int64_t lanes) { emit_running_sum(e, column, lanes); });
}

}  // namespace kiln::cpu
