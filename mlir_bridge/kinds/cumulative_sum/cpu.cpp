// cumulative_sum is sequential along its axis. If the axis is not the last one, vectors run along the other axes.
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/kinds/cumulative_sum/generators.hpp"

namespace kiln::cpu {

void emit_cumulative_sum(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<cumulative_sum>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  // Scalars are summed in f64, because a long chain of f32 additions loses digits.
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, input.type().rank()));
  auto dims = kernel_emitter::dims(input);
  std::int64_t extent = dims[axis];
  reduction_space space(e, input, {static_cast<std::int64_t>(axis)});
  element_type wide = is_float(type) ? element_type::f64 : type;
  auto add = [&](Value a, Value b) {
    return is_float(type) ? code.make<mlir::arith::AddFOp>(a, b).getResult()
                          : code.make<mlir::arith::AddIOp>(a, b).getResult();
  };
  auto chain = [&](position where, std::int64_t lanes) {
    code.loop(0, extent, 1, {code.number(code.type(wide, lanes), 0)}, [&](Value i, std::span<const Value> total) {
      where[axis] = {op.reverse ? code.sub(code.constant(extent - 1), i) : i, 0, {}, 0, extent, 1};
      evaluator ev(e);
      Value x = ev.at(input, where, lanes);
      Value widened = is_float(type) && compute_type(type) == element_type::f32
                          ? code.make<mlir::arith::ExtFOp>(code.type(wide, lanes), x).getResult()
                          : x;
      Value next = add(total[0], widened);
      Value result = op.exclusive ? total[0] : next;
      if (is_float(type) && compute_type(type) == element_type::f32)
        result = code.make<mlir::arith::TruncFOp>(code.type(type, lanes), result);
      evaluator epilogue(e);
      epilogue.bind(e.anchor_result(), result);
      epilogue.store_outputs(where, lanes);
      return values{next};
    });
  };
  auto start = [&](std::span<const Value> at) {
    position where(dims.size(), axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
    for (std::size_t i = 0; i < space.kept.size(); ++i) where[space.kept[i]] = {at[i], 0, {}, 0, space.kept_dims[i], 1};
    return where;
  };
  if (space.inner) {
    e.parallel("cumulative_sum", space.kept_dims, extent * 4, [&](std::span<const Value> at) { chain(start(at), 1); });
    return;
  }
  std::int64_t native = e.lanes_for(wide, space.lane_extent);
  space.parallel_columns(
      "cumulative_sum", wide, extent, [&](std::span<const Value> at, Value first, std::int64_t width) {
        code.loop(0, width, native, [&](Value offset) {
          position where = start(at);
          where[space.lane_axis] = {code.add(first, offset), native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
          chain(where, native);
        });
      });
}

}  // namespace kiln::cpu
