// softmax and log(softmax). A row that fits into registers is read once. A longer one is read twice, with a running
// maximum and a sum that is rescaled when the maximum grows.
#include <array>
#include <limits>
#include <numbers>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/row_team.hpp"
#include "mlir_bridge/kinds/softmax/generators.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

struct softmax_emitter {
  kernel_emitter& e;
  code_builder& code;
  row_team team;
  value input;
  element_type type;
  bool logarithm;
  bool exact = type == element_type::f64;

  Value minus(Value a, Value b) const { return code.make<arith::SubFOp>(a, b); }
  Value plus(Value a, Value b) const { return code.make<arith::AddFOp>(a, b); }
  Value times(Value a, Value b) const { return code.make<arith::MulFOp>(a, b); }
  // A NaN may be dropped here, but reaches the result through the sum.
  Value larger_number(Value a, Value b) const { return code.make<arith::MaxNumFOp>(a, b); }
  // Arguments are differences to the maximum and never positive, so the error of a single multiplication is small
  // compared to the result.
  Value power(Value x) const {
    if (exact) return exponential(code, x);
    std::array<Value, 1> operands{times(x, code.number(x.getType(), std::numbers::log2e))};
    return code.on.function(code, "exp2.fast", operands);
  }
  Value read(const row_team::place& at) const {
    evaluator ev(e);
    return ev.at(input, at.where, team.lanes());
  }
  void write(const row_team::place& at, Value result) const {
    team.when_owner(at, [&] {
      evaluator ev(e);
      ev.bind(e.anchor_result(), result);
      ev.store_outputs(at.where, team.lanes());
    });
  }
  // Returns the value that is subtracted from or multiplied with every element, computed from the sum.
  Value last_of(Value sum) const {
    if (!logarithm) return code.make<arith::DivFOp>(code.number(sum.getType(), 1), sum);
    std::array<Value, 1> operands{sum};
    return apply(code, scalar_function::log, type, operands);
  }

  void emit_kept() {
    mlir::Type vector = code.type(type, team.lanes());
    Value none = code.number(vector, -std::numeric_limits<double>::infinity()), zero = code.number(vector, 0);
    values x, powers;
    team.each([&](const row_team::place& at) { x.push_back(team.masked(at, read(at), none)); });
    Value top = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) top = larger_number(top, x[i]);
    top = team.spread(team.total(top, [&](Value a, Value b) { return larger_number(a, b); }));
    Value sum;
    team.each([&](const row_team::place& at) {
      Value& element = x[static_cast<std::size_t>(at.piece)];
      element = minus(element, top);
      Value p = team.masked(at, power(element), zero);
      powers.push_back(p);
      sum = sum ? plus(sum, p) : p;
    });
    sum = team.total(sum, [&](Value a, Value b) { return plus(a, b); });
    Value last = team.spread(last_of(sum));
    team.each([&](const row_team::place& at) {
      auto i = static_cast<std::size_t>(at.piece);
      write(at, logarithm ? minus(x[i], last) : times(powers[i], last));
    });
  }

  // Combines {maximum, sum of exp(x - maximum)} of two disjoint sets.
  values join(std::span<const Value> a, std::span<const Value> b) const {
    Value top = larger_number(a[0], b[0]);
    return {top, plus(times(a[1], power(minus(a[0], top))), times(b[1], power(minus(b[0], top))))};
  }

  void emit_looped() {
    mlir::Type vector = code.type(type, team.lanes());
    // A finite number instead of -inf, because -inf - (-inf) is NaN.
    Value lowest =
              code.number(vector, exact ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest()),
          zero = code.number(vector, 0);
    values total = team.walk({lowest, zero}, [&](const row_team::place& at, std::span<const Value> state) {
      Value x = team.masked(at, read(at), lowest), top = larger_number(state[0], x);
      return values{top,
                    plus(times(state[1], power(minus(state[0], top))), team.masked(at, power(minus(x, top)), zero))};
    });
    total = team.total(total, [&](std::span<const Value> a, std::span<const Value> b) { return join(a, b); });
    Value top = team.spread(total[0]), last = team.spread(last_of(total[1]));
    team.each([&](const row_team::place& at) {
      Value x = minus(read(at), top);
      write(at, logarithm ? minus(x, last) : times(power(x), last));
    });
  }
};

}  // namespace

std::vector<candidate> softmax_space(kernel_emitter& e) {
  value input = e.anchor()->inputs()[0];
  return row_team_space(e, input, {normalize_axis(e.anchor()->op().get_if<softmax>()->axis, input.type().rank())},
                        /*passes=*/2);
}

void emit_softmax(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<softmax>();
  value input = e.anchor()->inputs()[0];
  std::vector<std::int64_t> axes{normalize_axis(op.axis, input.type().rank())};
  if (input.type().elements() == 0) return;
  if (!row_team(e, input, axes).in_registers()) e.materialize(input);
  softmax_emitter emitter{e, e.code, row_team(e, input, axes), input, compute_type(input.type().type), op.logarithm};
  emitter.team.open("softmax");
  if (emitter.team.in_registers()) emitter.emit_kept();
  else emitter.emit_looped();
  emitter.team.close();
}

}  // namespace kiln::gpu
