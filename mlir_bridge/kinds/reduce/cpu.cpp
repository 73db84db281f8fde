// reduce (sums, means, products and extremes over any axes) and arg_reduce (along one axis).
#include <algorithm>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_rule.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/reduce/generators.hpp"

namespace kiln::cpu {

namespace {

// Returns a position with the kept axes' indices; combined axes are 0.
position kept_position(code_builder& code, const reduction_space& space, std::size_t rank, std::span<const Value> at) {
  position where(rank, axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t i = 0; i < space.kept.size(); ++i) where[space.kept[i]] = {at[i], 0, {}, 0, space.kept_dims[i], 1};
  return where;
}

void store_result(kernel_emitter& e, const position& where, Value result, std::int64_t lanes) {
  evaluator ev(e);
  ev.bind(e.anchor_result(), result);
  ev.store_outputs(where, lanes);
}

// Returns true for a reduction over no elements: every result is the neutral element.
bool is_empty(const std::vector<std::int64_t>& dims) { return std::ranges::find(dims, 0) != dims.end(); }

}  // namespace

void emit_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  auto dims = kernel_emitter::dims(input);
  if (is_empty(dims))
    throw error(error_kind::unsupported,
                "a reduction over an empty tensor (" + input.type().str() + ") has no CPU code; fold it ahead of time");
  reduction_rule r(op.kind, type);
  reduction_space space(e, input, op.axes);
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return r.widen(code, ev.at(input, where, lanes));
  };

  if (space.inner) {
    std::int64_t lanes = e.lanes_for(r.type, space.lane_extent);
    auto combine = [&](std::span<const Value> a, std::span<const Value> b) {
      return values{r.combine(code, a[0], b[0])};
    };
    e.parallel("reduce", space.kept_dims, space.count, [&](std::span<const Value> at) {
      Value start = r.start(code, lanes);
      values total = space.walk_row(
          at, lanes, rows_abreast(e, 4), {start},
          [&](const position& where, std::int64_t n, Value valid, std::span<const Value> state) {
            Value x = read(where, n);
            if (valid) x = code.select(valid, x, start);
            return values{r.combine(code, state[0], x)};
          },
          combine);
      Value result = r.finish(code, code.horizontal(r.combining(), total[0]), space.count);
      store_result(e, reduced_position(code, kept_position(code, space, dims.size(), at), op.axes, op.keep_dims),
                   result, 1);
    });
    return;
  }
  std::int64_t native = e.lanes_for(r.type, space.lane_extent);
  space.divide_by_operand(r.type);
  space.parallel_columns(
      "reduce", r.type, space.count, [&](std::span<const Value> at, Value first, std::int64_t width) {
        // Several adjacent vectors share the loops over the combined axes.
        std::int64_t vectors = width / native;
        values start(static_cast<std::size_t>(vectors), r.start(code, native));
        auto step = [&](const position& where, std::int64_t n, Value, std::span<const Value> state) {
          values next;
          for (std::int64_t v = 0; v < vectors; ++v) {
            position shifted = where;
            shifted[space.lane_axis].base = code.add(where[space.lane_axis].base, v * native);
            next.push_back(r.combine(code, state[static_cast<std::size_t>(v)], read(shifted, n)));
          }
          return next;
        };
        values total = space.walk_operands(first, [&] { return space.walk_column(at, first, native, start, step); });
        for (std::int64_t v = 0; v < vectors; ++v) {
          position where = kept_position(code, space, dims.size(), at);
          where[space.lane_axis] = {code.add(first, v * native), native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
          store_result(e, reduced_position(code, where, op.axes, op.keep_dims),
                       r.finish(code, total[static_cast<std::size_t>(v)], space.count), native);
        }
      });
}

void emit_arg_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<arg_reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  auto dims = kernel_emitter::dims(input);
  if (is_empty(dims))
    throw error(error_kind::unsupported,
                "arg_reduce of an empty tensor (" + input.type().str() + ") has no CPU code; fold it ahead of time");
  std::vector<std::int64_t> axes{op.axis};
  auto axis = static_cast<std::size_t>(op.axis);
  reduction_space space(e, input, axes);
  arg_reduction_rule r(op, type);
  element_type compared = r.compared;
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return convert_element(code, ev.at(input, where, lanes), type, compared);
  };
  auto meet = [&](Value x, Value index, Value valid, std::span<const Value> state) {
    return r.meet(code, x, index, valid, state);
  };
  auto begin = [&](std::int64_t lanes) { return r.start(code, lanes, element_type::i64); };

  if (space.inner) {
    std::int64_t lanes = std::min(e.lanes_for(compared, space.lane_extent), e.native_lanes());
    auto join = [&](std::span<const Value> a, std::span<const Value> b) { return r.join(code, a, b); };
    e.parallel("arg_reduce", space.kept_dims, space.count * 2, [&](std::span<const Value> at) {
      values best = space.walk_row(
          at, lanes, rows_abreast(e, 2), begin(lanes),
          [&](const position& where, std::int64_t n, Value valid, std::span<const Value> state) {
            Value index = code.add(code.splat(where[axis].base, n), code.lane_numbers(n));
            return meet(read(where, n), index, valid, state);
          },
          join);
      values winner{code.lane(best[0], 0), code.lane(best[1], 0)};
      for (std::int64_t lane = 1; lane < code_builder::lanes_of(best[0]); ++lane) {
        values next{code.lane(best[0], lane), code.lane(best[1], lane)};
        winner = join(winner, next);
      }
      store_result(e, reduced_position(code, kept_position(code, space, dims.size(), at), axes, op.keep_dims),
                   winner[1], 1);
    });
    return;
  }
  std::int64_t native = e.lanes_for(compared, space.lane_extent);
  space.parallel_columns(
      "arg_reduce", compared, space.count * 2, [&](std::span<const Value> at, Value first, std::int64_t width) {
        code.loop(0, width, native, [&](Value offset) {
          Value lane = code.add(first, offset);
          values best =
              space.walk_column(at, lane, native, begin(native),
                                [&](const position& where, std::int64_t n, Value, std::span<const Value> state) {
                                  return meet(read(where, n), code.splat(where[axis].base, n), {}, state);
                                });
          position where = kept_position(code, space, dims.size(), at);
          where[space.lane_axis] = {lane, native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
          store_result(e, reduced_position(code, where, axes, op.keep_dims), best[1], native);
        });
      });
}

}  // namespace kiln::cpu
