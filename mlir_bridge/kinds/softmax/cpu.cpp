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
constexpr double lowest = -std::numeric_limits<double>::infinity();

// Returns the larger of two numbers. A NaN may be dropped here, but reaches the result through the sum.
Value larger_number(code_builder& b, Value x, Value y) {
  return b.select(b.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y), x, y);
}

class softmax_writer {
 public:
  explicit softmax_writer(kernel_emitter& e)
      : e_(e),
        op_(*e.anchor()->op().get_if<softmax>()),
        input_(e.anchor()->inputs()[0]),
        type_(compute_type(input_.type().type)),
        space_(e, input_, {normalize_axis(op_.axis, input_.type().rank())}) {}

  void emit() {
    if (space_.inner) emit_rows();
    else emit_columns();
  }

 private:
  void emit_rows();     // the last axis is combined: lanes hold elements of one row
  void emit_columns();  // the last axis is kept: each lane combines its own elements

  Value read(const position& where, std::int64_t lanes) const {
    evaluator ev(e_);
    return ev.at(input_, where, lanes);
  }
  void store(const position& where, Value result, std::int64_t lanes) const {
    evaluator ev(e_);
    ev.bind(e_.anchor_result(), result);
    ev.store_outputs(where, lanes);
  }
  // Returns what the last pass needs of the sum of exponentials: its logarithm or its reciprocal.
  Value divisor(Value sum) const {
    if (!op_.logarithm) return code_.make<arith::DivFOp>(code_.number(sum.getType(), 1), sum);
    std::array<Value, 1> operands{sum};
    return apply(code_, scalar_function::log, type_, operands);
  }
  Value shifted(Value x, Value top) const { return code_.make<arith::SubFOp>(x, top); }
  // Returns the results for elements `x`, from which the maximum was subtracted. `divisor` is a vector, or one number
  // for all lanes.
  Value quotient(Value x, Value divisor) const {
    auto spread = [&] {
      return code_builder::lanes_of(divisor) == 1 ? code_.splat(divisor, code_builder::lanes_of(x)) : divisor;
    };
    if (op_.logarithm) return shifted(x, spread());
    Value power = exponential(code_, x);
    return code_.make<arith::MulFOp>(power, spread());
  }

  kernel_emitter& e_;
  code_builder& code_ = e_.code;
  const softmax& op_;
  value input_;
  element_type type_;
  reduction_space space_;
};

void softmax_writer::emit_columns() {
  std::int64_t native = e_.lanes_for(type_, space_.lane_extent);
  space_.parallel_columns(
      "softmax", type_, space_.count * 20, [&](std::span<const Value> at, Value first, std::int64_t width) {
        code_.loop(0, width, native, [&](Value offset) {
          Value lane = code_.add(first, offset);
          mlir::Type vector = code_.type(type_, native);
          Value top = space_.walk_column(at, lane, native, {code_.number(vector, lowest)},
                                         [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                                           return values{larger_number(code_, read(where, n), s[0])};
                                         })[0];
          Value sum = space_.walk_column(
              at, lane, native, {code_.number(vector, 0)},
              [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                return values{code_.make<arith::AddFOp>(s[0], exponential(code_, shifted(read(where, n), top)))};
              })[0];
          Value last = divisor(sum);
          space_.walk_column(at, lane, native, {},
                             [&](const position& where, std::int64_t n, Value, std::span<const Value>) {
                               store(where, quotient(shifted(read(where, n), top), last), n);
                               return values{};
                             });
        });
      });
}

// If a row fits, the results of the first pass (a prologue) or of the second (exponentials) are kept on the stack.
void softmax_writer::emit_rows() {
  std::int64_t lanes = e_.lanes_for(type_, space_.lane_extent);
  bool on_stack = space_.lane_extent <= longest_stack_row;
  bool keeps_input = on_stack && !e_.in_memory(input_), keeps_exponentials = on_stack && !op_.logarithm;
  e_.parallel("softmax", space_.kept_dims, space_.count * 20, [&](std::span<const Value> at) {
    Value row = keeps_input || keeps_exponentials ? code_.stack(type_, space_.lane_extent) : Value();
    auto again = [&](const position& where, std::int64_t n) {
      return keeps_input ? code_.load(row, space_.row_offset(where), type_, n) : read(where, n);
    };
    auto offset_known = [&](const position& where) { return static_cast<bool>(space_.row_offset(where)); };
    mlir::Type vector = code_.type(type_, lanes);
    Value none = code_.number(vector, lowest), zero = code_.number(vector, 0);
    Value top = space_.walk_row(
        at, lanes, rows_abreast(e_, 4), {none},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = read(where, n);
          if (keeps_input && offset_known(where)) code_.store(row, space_.row_offset(where), type_, x);
          if (valid) x = code_.select(valid, x, none);
          return values{larger_number(code_, x, s[0])};
        },
        [&](std::span<const Value> a, std::span<const Value> b) {
          return values{larger_number(code_, a[0], b[0])};
        })[0];
    Value highest = code_.horizontal(CombiningKind::MAXNUMF, top);
    Value sums = space_.walk_row(
        at, lanes, rows_abreast(e_, 2), {zero},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = offset_known(where) ? again(where, n) : read(where, n);
          Value power = exponential(code_, shifted(x, code_.splat(highest, n)));
          if (keeps_exponentials && offset_known(where)) {
            // The last vector may overlap the one before it, whose elements on the stack are exponentials already. Only
            // its new lanes are stored; the others keep what they hold.
            if (valid && keeps_input)
              power = code_.select(valid, power, code_.load(row, space_.row_offset(where), type_, n));
            code_.store(row, space_.row_offset(where), type_, power);
          }
          if (valid) power = code_.select(valid, power, zero);
          return values{code_.make<arith::AddFOp>(s[0], power)};
        },
        [&](std::span<const Value> a, std::span<const Value> b) {
          return values{code_.make<arith::AddFOp>(a[0], b[0])};
        })[0];
    Value last = divisor(code_.horizontal(CombiningKind::ADD, sums));
    space_.write_row(at, lanes, [&](const position& where) {
      Value result;
      if (keeps_exponentials && offset_known(where)) {
        Value power = code_.load(row, space_.row_offset(where), type_, lanes);
        result = code_.make<arith::MulFOp>(power, code_.splat(last, lanes));
      } else {
        Value x = shifted(offset_known(where) ? again(where, lanes) : read(where, lanes), code_.splat(highest, lanes));
        result = quotient(x, last);
      }
      store(where, result, lanes);
    });
  });
}

}  // namespace

void emit_softmax(kernel_emitter& e) {
  value input = e.anchor()->inputs()[0];
  const auto& op = *e.anchor()->op().get_if<softmax>();
  reduction_space probe(e, input, {normalize_axis(op.axis, input.type().rank())});
  bool fits = probe.inner && probe.lane_extent <= longest_stack_row;
  if (!fits && !e.in_memory(input)) e.materialize(input);
  softmax_writer(e).emit();
}

}  // namespace kiln::cpu
