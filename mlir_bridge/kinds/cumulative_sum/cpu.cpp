// cumulative_sum is sequential along its axis. If the axis is not the last one, vectors run along the other axes.
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/kinds/cumulative_sum/cpu/running_sum.hpp"
#include "mlir_bridge/kinds/cumulative_sum/generators.hpp"

namespace kiln::cpu {

void emit_cumulative_sum(kernel_emitter& e) {
  auto& code = e.code;
  const value input = e.anchor()->inputs()[0];
  const auto dims = kernel_emitter::dims(input);
  const std::int64_t axis = normalize_axis(e.anchor()->op().get_if<cumulative_sum>()->axis, dims.size()),
                     extent = dims[static_cast<std::size_t>(axis)];
  reduction_space space(e, input, {axis});
  const element_type wide = running_sum_type(input.type().type);
  auto start = [&](std::span<const Value> at) {
    position where(dims.size(), axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
    for (std::size_t i = 0; i < space.kept.size(); ++i) where[space.kept[i]] = {at[i], 0, {}, 0, space.kept_dims[i], 1};
    return where;
  };
  if (space.inner) {
    e.parallel("cumulative_sum", space.kept_dims, extent * 4,
               [&](std::span<const Value> at) { emit_running_sum(e, start(at), 1); });
    return;
  }
  const std::int64_t native = e.lanes_for(wide, space.lane_extent);
  space.parallel_columns(
      "cumulative_sum", wide, extent, [&](std::span<const Value> at, Value first, std::int64_t width) {
        code.loop(0, width, native, [&](Value offset) {
          position where = start(at);
          where[space.lane_axis] = {code.add(first, offset), native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
          emit_running_sum(e, where, native);
        });
      });
}

}  // namespace kiln::cpu
