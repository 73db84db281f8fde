#include "mlir_bridge/kinds/cumulative_sum/cpu/running_sum.hpp"

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::cpu {

using namespace codegen;

element_type running_sum_type(element_type type) { return is_float(type) ? element_type::f64 : type; }

void emit_running_sum(kernel_emitter& e, const position& start, std::int64_t lanes) {
  const auto& op = *e.anchor()->op().get_if<cumulative_sum>();
  auto& code = e.code;
  const value input = e.anchor()->inputs()[0];
  const element_type type = input.type().type, wide = running_sum_type(type);
  const auto axis = static_cast<std::size_t>(normalize_axis(op.axis, input.type().rank()));
  const dim& extent = kernel_emitter::sizes(input)[axis];
  const bool widens = is_float(type) && compute_type(type) == element_type::f32;
  code.loop(code.constant(0), e.size(extent), 1, {code.number(code.type(wide, lanes), 0)},
            [&](Value i, std::span<const Value> total) {
              position where = start;
              where[axis] = {op.reverse ? code.sub(e.size(extent - 1), i) : i, 0, {}, 0, known_bound(extent), 1};
              evaluator ev(e);
              Value x = ev.at(input, where, lanes);
              if (widens) x = code.make<mlir::arith::ExtFOp>(code.type(wide, lanes), x);
              const Value next = is_float(type) ? code.make<mlir::arith::AddFOp>(total[0], x).getResult()
                                                : code.make<mlir::arith::AddIOp>(total[0], x).getResult();
              Value result = op.exclusive ? total[0] : next;
              if (widens) result = code.make<mlir::arith::TruncFOp>(code.type(type, lanes), result);
              evaluator epilogue(e);
              epilogue.bind(e.anchor_result(), result);
              epilogue.store_outputs(where, lanes);
              return values{next};
            });
}

}  // namespace kiln::cpu
