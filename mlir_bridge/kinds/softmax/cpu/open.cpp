// softmax and log(softmax) of open sizes. A row that fits is computed in a buffer on the stack, which is padded with
// -inf to whole vectors. A longer row is read again in each pass.
#include <array>
#include <limits>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/open_rows.hpp"
#include "mlir_bridge/kinds/softmax/generators.hpp"

namespace kiln::cpu {

using namespace codegen;

namespace {

namespace arith = mlir::arith;
using mlir::vector::CombiningKind;

constexpr std::int64_t longest_stack_row = 8192;  // elements of f32
constexpr double lowest = -std::numeric_limits<double>::infinity();

class open_softmax {
 public:
  explicit open_softmax(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<softmax>()),
        input(e.anchor()->inputs()[0]),
        type(compute_type(input.type().type)),
        rows(e, input, {normalize_axis(op.axis, input.type().rank())}, type) {}

  void emit() {
    if (!rows.inner) {
      e.materialize(input);
      return rows.parallel_columns("softmax", 20,
                                   [&](const position& column, std::int64_t lanes) { emit_column(column, lanes); });
    }
    rows.parallel_rows("softmax", 20, [&](std::span<const Value> at) {
      row = code.stack(type, longest_stack_row + rows.lanes);
      if (rows.row_size.is_static() && rows.row_size.value() <= longest_stack_row) return emit_short_row(at);
      code.branch(
          code.less(e.size(rows.row_size), code.constant(longest_stack_row + 1)),
          [&] {
            emit_short_row(at);
            return values{};
          },
          [&] {
            emit_long_row(at);
            return values{};
          });
    });
  }

 private:
  Value read(const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return ev.at(input, where, lanes);
  }
  void store(const position& where, Value result, std::int64_t lanes) {
    evaluator ev(e);
    ev.bind(e.anchor_result(), result);
    ev.store_outputs(where, lanes);
  }
  Value number(double v, std::int64_t lanes) { return code.number(code.type(type, lanes), v); }
  // Returns the larger of two numbers. A NaN may be dropped here, but reaches the result through the sum.
  Value larger_number(Value x, Value y) {
    return code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y), x, y);
  }
  Value minus(Value x, Value y) { return code.make<arith::SubFOp>(x, code.splat(y, vector_lanes(x, y))); }
  static std::int64_t vector_lanes(Value x, Value y) {
    return code_builder::lanes_of(y) == 1 ? code_builder::lanes_of(x) : 1;
  }
  Value power(Value x, Value top) { return exponential(code, minus(x, top)); }
  Value plus(Value x, Value y) { return code.make<arith::AddFOp>(x, y); }
  // Returns the value that each element is combined with in the last pass: the reciprocal of the sum, or its logarithm.
  Value last_step(Value sum) {
    if (!op.logarithm) return code.make<arith::DivFOp>(number(1, code_builder::lanes_of(sum)), sum);
    std::array<Value, 1> operands{sum};
    return apply(code, scalar_function::log, type, operands);
  }
  Value result_of(Value x, Value top, Value last) {
    if (op.logarithm) return minus(minus(x, top), last);
    Value exponent = power(x, top);
    return code.make<arith::MulFOp>(exponent, code.splat(last, vector_lanes(exponent, last)));
  }
  values larger_of(std::span<const Value> a, std::span<const Value> b) { return {larger_number(a[0], b[0])}; }

  void emit_column(const position& column, std::int64_t lanes) {
    using state = std::span<const Value>;
    const Value top = rows.walk_column(column, {number(lowest, lanes)}, [&](const position& where, state s) {
      return values{larger_number(read(where, lanes), s[0])};
    })[0];
    const Value sum = rows.walk_column(column, {number(0, lanes)}, [&](const position& where, state s) {
      return values{plus(s[0], power(read(where, lanes), top))};
    })[0];
    const Value last = last_step(sum);
    rows.walk_column(column, {}, [&](const position& where, state) {
      store(where, result_of(read(where, lanes), top, last), lanes);
      return values{};
    });
  }

  void emit_short_row(std::span<const Value> at) {
    const Value none = number(lowest, rows.lanes);
    const Value tops = rows.walk(
        at, 4, {none},
        [&](const position& where, Value valid, std::span<const Value> s) {
          Value x = read(where, rows.lanes), offset = where[rows.lane_axis].base;
          if (valid) {
            x = code.select(valid, x, none);
            offset = code.mul(code.div(e.size(rows.row_size), rows.lanes), rows.lanes);
          }
          code.store(row, offset, type, x);
          return values{larger_number(x, s[0])};
        },
        [&](auto a, auto b) { return larger_of(a, b); })[0];
    const Value top = code.horizontal(CombiningKind::MAXNUMF, tops);
    const Value sums = rows.sweep({number(0, rows.lanes)}, [&](Value offset, std::span<const Value> s) {
      const Value exponent = power(code.load(row, offset, type, rows.lanes), top);
      if (!op.logarithm) code.store(row, offset, type, exponent);
      return values{plus(s[0], exponent)};
    })[0];
    const Value last = last_step(code.horizontal(CombiningKind::ADD, sums));
    rows.write(at, [&](const position& where, std::int64_t lanes) {
      const Value kept = code.load(row, where[rows.lane_axis].base, type, lanes);
      store(where,
            op.logarithm ? minus(minus(kept, top), last)
                         : code.make<arith::MulFOp>(kept, code.splat(last, lanes)).getResult(),
            lanes);
    });
  }

  void emit_long_row(std::span<const Value> at) {
    const Value none = number(lowest, rows.lanes), zero = number(0, rows.lanes);
    const Value tops = rows.walk(
        at, 4, {none},
        [&](const position& where, Value valid, std::span<const Value> s) {
          Value x = read(where, rows.lanes);
          if (valid) x = code.select(valid, x, none);
          return values{larger_number(x, s[0])};
        },
        [&](auto a, auto b) { return larger_of(a, b); })[0];
    const Value top = code.horizontal(CombiningKind::MAXNUMF, tops);
    const Value sums = rows.walk(
        at, 2, {zero},
        [&](const position& where, Value valid, std::span<const Value> s) {
          Value exponent = power(read(where, rows.lanes), top);
          if (valid) exponent = code.select(valid, exponent, zero);
          return values{plus(s[0], exponent)};
        },
        [&](auto a, auto b) { return values{plus(a[0], b[0])}; })[0];
    const Value last = last_step(code.horizontal(CombiningKind::ADD, sums));
    rows.write(at, [&](const position& where, std::int64_t lanes) {
      store(where, result_of(read(where, lanes), top, last), lanes);
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const softmax& op;
  value input;
  element_type type;
  open_rows rows;
  Value row;
};

}  // namespace

void emit_open_softmax(kernel_emitter& e) { open_softmax(e).emit(); }

}  // namespace kiln::cpu
