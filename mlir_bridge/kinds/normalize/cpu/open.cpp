// normalize of open sizes: mean and variance in two passes (a single pass would lose digits if the mean is large), then
// the scaled difference.
#include "ir/ops/all.hpp"
#include "mlir_bridge/cpu/open_rows.hpp"
#include "mlir_bridge/kinds/normalize/generators.hpp"

namespace kiln::cpu {

using namespace codegen;

namespace {

namespace arith = mlir::arith;

class open_normalize {
 public:
  explicit open_normalize(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<normalize>()),
        input(e.anchor()->inputs()[0]),
        type(compute_type(input.type().type)),
        rows(e, input, op.axes, type) {}

  void emit() {
    e.materialize(input);
    if (!rows.inner)
      return rows.parallel_columns("normalize", 4,
                                   [&](const position& column, std::int64_t lanes) { emit_column(column, lanes); });
    rows.parallel_rows("normalize", 4, [&](std::span<const Value> at) { emit_row(at); });
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
  Value zero(std::int64_t lanes) { return code.number(code.type(type, lanes), 0); }
  Value plus(Value x, Value y) { return code.make<arith::AddFOp>(x, y); }
  Value times(Value x, Value y) { return code.make<arith::MulFOp>(x, y); }
  Value share_of(Value total) {
    return code.make<arith::DivFOp>(total, code.splat(rows.count_as(type), code_builder::lanes_of(total)));
  }
  // 1 / sqrt(squares / count + epsilon)
  Value scale_of(Value squares) {
    const mlir::Type t = squares.getType();
    const Value variance = plus(share_of(squares), code.number(t, op.epsilon));
    return code.make<arith::DivFOp>(code.number(t, 1), code.make<mlir::math::SqrtOp>(variance).getResult());
  }
  Value centered(Value x, Value mean) {
    if (!op.centered) return x;
    return code.make<arith::SubFOp>(
        x, code.splat(mean, code_builder::lanes_of(mean) == 1 ? code_builder::lanes_of(x) : 1));
  }

  void emit_column(const position& column, std::int64_t lanes) {
    using state = std::span<const Value>;
    Value mean;
    if (op.centered)
      mean = share_of(rows.walk_column(column, {zero(lanes)}, [&](const position& where, state s) {
        return values{plus(s[0], read(where, lanes))};
      })[0]);
    const Value squares = rows.walk_column(column, {zero(lanes)}, [&](const position& where, state s) {
      const Value d = centered(read(where, lanes), mean);
      return values{code.fma(d, d, s[0])};
    })[0];
    const Value scale = scale_of(squares);
    rows.walk_column(column, {}, [&](const position& where, state) {
      store(where, times(centered(read(where, lanes), mean), scale), lanes);
      return values{};
    });
  }

  void emit_row(std::span<const Value> at) {
    const Value none = zero(rows.lanes);
    auto join = [&](std::span<const Value> a, std::span<const Value> b) { return values{plus(a[0], b[0])}; };
    auto total = [&](Value sums) { return code.horizontal(mlir::vector::CombiningKind::ADD, sums); };
    Value mean;
    if (op.centered)
      mean = share_of(total(rows.walk(
          at, 4, {none},
          [&](const position& where, Value valid, std::span<const Value> s) {
            const Value x = read(where, rows.lanes);
            return values{plus(s[0], valid ? code.select(valid, x, none) : x)};
          },
          join)[0]));
    const Value squares = total(rows.walk(
        at, 4, {none},
        [&](const position& where, Value valid, std::span<const Value> s) {
          Value d = centered(read(where, rows.lanes), mean);
          if (valid) d = code.select(valid, d, none);
          return values{code.fma(d, d, s[0])};
        },
        join)[0]);
    const Value scale = scale_of(squares);
    rows.write(at, [&](const position& where, std::int64_t lanes) {
      store(where, times(centered(read(where, lanes), mean), code.splat(scale, lanes)), lanes);
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const normalize& op;
  value input;
  element_type type;
  open_rows rows;
};

}  // namespace

void emit_open_normalize(kernel_emitter& e) { open_normalize(e).emit(); }

}  // namespace kiln::cpu
