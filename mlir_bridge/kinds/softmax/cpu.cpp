// softmax and log(softmax) in three passes: the maximum, the sum of exponentials, the quotient.
#include <array>
#include <limits>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/softmax/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;
using mlir::vector::CombiningKind;

constexpr std::int64_t longest_stack_row = 8192;  // elements of f32

// Returns the larger of two numbers. A NaN may be dropped here, but reaches the result through the sum.
Value larger_number(code_builder& b, Value x, Value y) {
  return b.select(b.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y), x, y);
}

}  // namespace

void emit_softmax(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<softmax>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = compute_type(input.type().type);
  std::int64_t axis = normalize_axis(op.axis, input.type().rank());
  const double lowest = -std::numeric_limits<double>::infinity();
  {
    reduction_space probe(e, input, {axis});
    bool fits = probe.inner && probe.lane_extent <= longest_stack_row;
    if (!fits && !e.in_memory(input)) e.materialize(input);
  }
  reduction_space space(e, input, {axis});
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return ev.at(input, where, lanes);
  };
  auto store = [&](const position& where, Value result, std::int64_t lanes) {
    evaluator ev(e);
    ev.bind(e.anchor_result(), result);
    ev.store_outputs(where, lanes);
  };
  auto reciprocal = [&](Value sum) { return code.make<arith::DivFOp>(code.number(sum.getType(), 1), sum).getResult(); };
  auto logarithm = [&](Value sum) {
    std::array<Value, 1> operands{sum};
    return apply(code, scalar_function::log, type, operands);
  };
  auto shifted = [&](Value x, Value top) { return code.make<arith::SubFOp>(x, top).getResult(); };

  if (!space.inner) {
    std::int64_t native = e.lanes_for(type, space.lane_extent);
    space.parallel_columns(
        "softmax", type, space.count * 20, [&](std::span<const Value> at, Value first, std::int64_t width) {
          code.loop(0, width, native, [&](Value offset) {
            Value lane = code.add(first, offset);
            mlir::Type vector = code.type(type, native);
            Value top = space.walk_column(at, lane, native, {code.number(vector, lowest)},
                                          [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                                            return values{larger_number(code, read(where, n), s[0])};
                                          })[0];
            Value sum = space.walk_column(
                at, lane, native, {code.number(vector, 0)},
                [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                  return values{code.make<arith::AddFOp>(s[0], exponential(code, shifted(read(where, n), top)))};
                })[0];
            Value last = op.logarithm ? logarithm(sum) : reciprocal(sum);
            space.walk_column(at, lane, native, {},
                              [&](const position& where, std::int64_t n, Value, std::span<const Value>) {
                                Value x = shifted(read(where, n), top);
                                store(where,
                                      op.logarithm ? shifted(x, last)
                                                   : code.make<arith::MulFOp>(exponential(code, x), last).getResult(),
                                      n);
                                return values{};
                              });
          });
        });
    return;
  }
  std::int64_t lanes = e.lanes_for(type, space.lane_extent);
  // If a row fits, the results of the first pass (a prologue) or of the second (exponentials) are kept on the stack.
  bool on_stack = space.lane_extent <= longest_stack_row;
  bool keeps_input = on_stack && !e.in_memory(input), keeps_exponentials = on_stack && !op.logarithm;
  e.parallel("softmax", space.kept_dims, space.count * 20, [&](std::span<const Value> at) {
    Value row = keeps_input || keeps_exponentials ? code.stack(type, space.lane_extent) : Value();
    auto again = [&](const position& where, std::int64_t n) {
      return keeps_input ? code.load(row, space.row_offset(where), type, n) : read(where, n);
    };
    auto offset_known = [&](const position& where) { return static_cast<bool>(space.row_offset(where)); };
    mlir::Type vector = code.type(type, lanes);
    Value none = code.number(vector, lowest), zero = code.number(vector, 0);
    Value top = space.walk_row(
        at, lanes, rows_abreast(e, 4), {none},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = read(where, n);
          if (keeps_input && offset_known(where)) code.store(row, space.row_offset(where), type, x);
          if (valid) x = code.select(valid, x, none);
          return values{larger_number(code, x, s[0])};
        },
        [&](std::span<const Value> a, std::span<const Value> b) { return values{larger_number(code, a[0], b[0])}; })[0];
    Value highest = code.horizontal(CombiningKind::MAXNUMF, top);
    Value sums = space.walk_row(
        at, lanes, rows_abreast(e, 2), {zero},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = offset_known(where) ? again(where, n) : read(where, n);
          Value power = exponential(code, shifted(x, code.splat(highest, n)));
          if (keeps_exponentials && offset_known(where)) {
            // An overlapping last vector must not use elements that were already overwritten: only its new lanes are
            // used, and the other lanes are stored unchanged.
            if (valid && keeps_input)
              power = code.select(valid, power, code.load(row, space.row_offset(where), type, n));
            code.store(row, space.row_offset(where), type, power);
          }
          if (valid) power = code.select(valid, power, zero);
          return values{code.make<arith::AddFOp>(s[0], power)};
        },
        [&](std::span<const Value> a, std::span<const Value> b) {
          return values{code.make<arith::AddFOp>(a[0], b[0])};
        })[0];
    Value sum = code.horizontal(CombiningKind::ADD, sums);
    Value last = op.logarithm ? logarithm(sum) : reciprocal(sum);
    space.write_row(at, lanes, [&](const position& where) {
      std::int64_t n = lanes;
      Value result;
      if (keeps_exponentials && offset_known(where)) {
        result = code.make<arith::MulFOp>(code.load(row, space.row_offset(where), type, n), code.splat(last, n));
      } else {
        Value x = shifted(offset_known(where) ? again(where, n) : read(where, n), code.splat(highest, n));
        result = op.logarithm ? shifted(x, code.splat(last, n))
                              : code.make<arith::MulFOp>(exponential(code, x), code.splat(last, n)).getResult();
      }
      store(where, result, n);
    });
  });
}

}  // namespace kiln::cpu
