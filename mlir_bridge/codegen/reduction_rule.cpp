#include "mlir_bridge/codegen/reduction_rule.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::codegen {

namespace arith = mlir::arith;
using mlir::vector::CombiningKind;

namespace {

element_type accumulator(reduction_kind kind, element_type type) {
  if (kind != reduction_kind::mean || is_float(type)) return type;
  return is_unsigned_integer(type) ? element_type::u64 : element_type::i64;
}

bool adds(reduction_kind kind) { return kind == reduction_kind::sum || kind == reduction_kind::mean; }

Value both(code_builder& b, Value x, Value y) { return b.make<arith::AndIOp>(x, y); }
Value either(code_builder& b, Value x, Value y) { return b.make<arith::OrIOp>(x, y); }
Value is_nan(code_builder& b, Value x) { return b.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x); }
Value is_none(code_builder& b, Value index) { return b.less(index, b.integer(index.getType(), 0)); }

}  // namespace

reduction_rule::reduction_rule(reduction_kind kind, element_type tensor)
    : kind(kind), tensor(tensor), type(accumulator(kind, tensor)) {}

Value reduction_rule::widen(code_builder& b, Value x) const { return convert_element(b, x, tensor, type); }

Value reduction_rule::start(code_builder& b, std::int64_t lanes) const {
  mlir::Type t = b.type(type, lanes);
  if (adds(kind)) return b.number(t, 0);
  if (kind == reduction_kind::product) return b.number(t, 1);
  bool largest = kind == reduction_kind::max;
  if (is_float(type))
    return b.number(t, largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  // Returns the smallest or largest integer (or bool).
  int bits = type == element_type::boolean ? 1 : storage_bits(type);
  bool is_signed = is_signed_integer(type);
  std::uint64_t ones = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  std::uint64_t low = is_signed ? ~(ones >> 1) & ones : 0, high = is_signed ? ones >> 1 : ones;
  return b.integer(t, static_cast<std::int64_t>(largest ? low : high));
}

Value reduction_rule::combine(code_builder& b, Value a, Value c) const {
  bool floating = is_float(type);
  if (adds(kind))
    return floating                        ? b.make<arith::AddFOp>(a, c).getResult()
           : type == element_type::boolean ? b.make<arith::OrIOp>(a, c).getResult()
                                           : b.make<arith::AddIOp>(a, c).getResult();
  if (kind == reduction_kind::product)
    return floating ? b.make<arith::MulFOp>(a, c).getResult() : b.make<arith::MulIOp>(a, c).getResult();
  return kind == reduction_kind::max ? larger(b, type, a, c) : smaller(b, type, a, c);
}

CombiningKind reduction_rule::combining() const {
  bool floating = is_float(type);
  if (adds(kind)) return type == element_type::boolean ? CombiningKind::OR : CombiningKind::ADD;
  if (kind == reduction_kind::product) return CombiningKind::MUL;
  if (kind == reduction_kind::max)
    return floating ? CombiningKind::MAXIMUMF : is_signed_integer(type) ? CombiningKind::MAXSI : CombiningKind::MAXUI;
  return floating ? CombiningKind::MINIMUMF : is_signed_integer(type) ? CombiningKind::MINSI : CombiningKind::MINUI;
}

Value reduction_rule::finish(code_builder& b, Value total, std::int64_t count) const {
  if (kind != reduction_kind::mean) return total;
  if (is_float(type)) return b.make<arith::MulFOp>(total, b.number(total.getType(), 1.0 / static_cast<double>(count)));
  Value divisor = b.integer(total.getType(), std::max<std::int64_t>(count, 1));
  Value mean = is_signed_integer(type) ? b.make<arith::DivSIOp>(total, divisor).getResult()
                                       : b.make<arith::DivUIOp>(total, divisor).getResult();
  return convert_element(b, mean, type, tensor);
}

Value reduction_rule::finish_mean(code_builder& b, Value total, Value count) const {
  count = b.splat(count, code_builder::lanes_of(total));
  if (is_float(type)) return b.make<arith::DivFOp>(total, count);
  // The mean of no integers is 0.
  count = b.make<arith::MaxUIOp>(count, b.integer(count.getType(), 1));
  const Value mean = is_signed_integer(type) ? b.make<arith::DivSIOp>(total, count).getResult()
                                             : b.make<arith::DivUIOp>(total, count).getResult();
  return convert_element(b, mean, type, tensor);
}

arg_reduction_rule::arg_reduction_rule(const arg_reduce& op, element_type type)
    : op(op), type(type), compared(type == element_type::boolean ? element_type::u8 : type) {}

values arg_reduction_rule::start(code_builder& b, std::int64_t lanes, element_type index) const {
  return {b.number(b.type(compared, lanes), 0), b.integer(b.type(index, lanes), -1)};
}

Value arg_reduction_rule::strictly(code_builder& b, Value x, Value y) const {
  std::array<Value, 2> pair{x, y};
  Value wins = apply(b, op.largest ? scalar_function::greater : scalar_function::less, compared, pair);
  if (!is_float(type)) return wins;
  return either(b, wins, both(b, is_nan(b, x), b.make<arith::CmpFOp>(arith::CmpFPredicate::ORD, y, y)));
}

Value arg_reduction_rule::tied(code_builder& b, Value x, Value y) const {
  std::array<Value, 2> pair{x, y};
  Value equal = apply(b, scalar_function::equal, compared, pair);
  return is_float(type) ? either(b, equal, both(b, is_nan(b, x), is_nan(b, y))) : equal;
}

values arg_reduction_rule::meet(code_builder& b, Value x, Value index, Value valid,
                                std::span<const Value> state) const {
  Value better = strictly(b, x, state[0]);
  if (op.select_last) better = either(b, better, tied(b, x, state[0]));
  Value take = either(b, better, is_none(b, state[1]));
  if (valid) take = both(b, take, valid);
  return {b.select(take, x, state[0]), b.select(take, index, state[1])};
}

values arg_reduction_rule::join(code_builder& b, std::span<const Value> a, std::span<const Value> c) const {
  Value nearer = op.select_last ? b.less(a[1], c[1]) : b.less(c[1], a[1]);
  Value take = either(b, either(b, strictly(b, c[0], a[0]), both(b, tied(b, c[0], a[0]), nearer)), is_none(b, a[1]));
  Value absent = is_none(b, c[1]);
  take = both(b, take, b.make<arith::XOrIOp>(absent, b.integer(absent.getType(), 1)));
  return {b.select(take, c[0], a[0]), b.select(take, c[1], a[1])};
}

position reduced_position(code_builder& code, const position& where, const std::vector<std::int64_t>& axes,
                          bool keep_dims) {
  position result;
  for (std::size_t axis = 0; axis < where.size(); ++axis) {
    bool combined = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    if (!combined) result.push_back(where[axis]);
    else if (keep_dims) result.push_back({code.constant(0), 0, {}, 0, 1, any_multiple});
  }
  return result;
}

}  // namespace kiln::codegen
