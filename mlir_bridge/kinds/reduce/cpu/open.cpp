// reduce and arg_reduce of open sizes.
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_rule.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/joined_axes.hpp"
#include "mlir_bridge/cpu/open_rows.hpp"
#include "mlir_bridge/kinds/reduce/generators.hpp"

namespace kiln::cpu {

using namespace codegen;

namespace {

void store_result(kernel_emitter& e, const position& where, const std::vector<std::int64_t>& axes, bool keep_dims,
                  Value result, std::int64_t lanes) {
  evaluator ev(e);
  ev.bind(e.anchor_result(), result);
  ev.store_outputs(reduced_position(e.code, where, axes, keep_dims), lanes);
}

// Like reduction_rule::finish, for a number of elements that may be open.
Value finished(kernel_emitter& e, const reduction_rule& r, const open_rows& rows, Value total) {
  if (r.kind != reduction_kind::mean || rows.count.is_static())
    return r.finish(e.code, total, rows.count.is_static() ? rows.count.value() : 1);
  return r.finish_mean(e.code, total, rows.count_as(r.type));
}

}  // namespace

void emit_open_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<reduce>();
  auto& code = e.code;
  const value input = e.anchor()->inputs()[0];
  const reduction_rule r(op.kind, input.type().type);
  const joined_axes joined(e, input, op.axes);
  const open_rows rows(e, joined.sizes(), joined.combined(), r.type);
  auto read = [&](const position& where, std::int64_t lanes) { return r.widen(code, joined.at(where, lanes)); };
  if (rows.inner) {
    rows.parallel_rows("reduce", 1, [&](std::span<const Value> at) {
      const Value start = r.start(code, rows.lanes);
      const Value total = rows.walk(
          at, 4, {start},
          [&](const position& where, Value valid, std::span<const Value> state) {
            Value x = read(where, rows.lanes);
            if (valid) x = code.select(valid, x, start);
            return values{r.combine(code, state[0], x)};
          },
          [&](std::span<const Value> a, std::span<const Value> b) { return values{r.combine(code, a[0], b[0])}; })[0];
      store_result(e, joined.all_axes(rows.start(at)), op.axes, op.keep_dims,
                   finished(e, r, rows, code.horizontal(r.combining(), total)), 1);
    });
    return;
  }
  rows.parallel_columns("reduce", 1, [&](const position& column, std::int64_t lanes) {
    const Value total =
        rows.walk_column(column, {r.start(code, lanes)}, [&](const position& where, std::span<const Value> state) {
          return values{r.combine(code, state[0], read(where, lanes))};
        })[0];
    store_result(e, joined.all_axes(column), op.axes, op.keep_dims, finished(e, r, rows, total), lanes);
  });
}

void emit_open_arg_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<arg_reduce>();
  auto& code = e.code;
  const value input = e.anchor()->inputs()[0];
  const element_type type = input.type().type;
  const std::vector<std::int64_t> axes{op.axis};
  const auto axis = static_cast<std::size_t>(op.axis);
  const arg_reduction_rule r(op, type);
  const open_rows rows(e, input, axes, element_type::i64);
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return convert_element(code, ev.at(input, where, lanes), type, r.compared);
  };
  if (rows.inner) {
    rows.parallel_rows("arg_reduce", 2, [&](std::span<const Value> at) {
      auto join = [&](std::span<const Value> a, std::span<const Value> b) { return r.join(code, a, b); };
      const values best = rows.walk(
          at, 2, r.start(code, rows.lanes, element_type::i64),
          [&](const position& where, Value valid, std::span<const Value> state) {
            return r.meet(code, read(where, rows.lanes), lane_indices(code, where[axis], rows.lanes), valid, state);
          },
          join);
      values winner{code.lane(best[0], 0), code.lane(best[1], 0)};
      for (std::int64_t lane = 1; lane < rows.lanes; ++lane) {
        const values next{code.lane(best[0], lane), code.lane(best[1], lane)};
        winner = join(winner, next);
      }
      store_result(e, rows.start(at), axes, op.keep_dims, winner[1], 1);
    });
    return;
  }
  rows.parallel_columns("arg_reduce", 2, [&](const position& column, std::int64_t lanes) {
    const values best = rows.walk_column(
        column, r.start(code, lanes, element_type::i64), [&](const position& where, std::span<const Value> state) {
          return r.meet(code, read(where, lanes), code.splat(where[axis].base, lanes), {}, state);
        });
    store_result(e, column, axes, op.keep_dims, best[1], lanes);
  });
}

}  // namespace kiln::cpu
