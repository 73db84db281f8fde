#include "mlir_bridge/codegen/scalar_functions.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/int4.hpp"
#include "mlir_bridge/codegen/rounded_operations.hpp"
#include "mlir_bridge/codegen/small_floats.hpp"

namespace kiln::codegen {

namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;

// The arguments of a rule: the builder, the operands' element type, the operands.
struct call {
  code_builder& b;
  element_type type;
  std::span<const Value> x;

  bool floating() const { return is_float(type); }
  bool is_signed() const { return is_signed_integer(type); }
  mlir::Type value_type() const { return x.back().getType(); }
  Value number(double v) const { return b.number(value_type(), v); }
  template <class Op>
  Value make(Value a) const {
    return b.make<Op>(a);
  }
  template <class Op>
  Value make(Value a, Value c) const {
    return b.make<Op>(a, c);
  }
  Value compare(arith::CmpFPredicate real, arith::CmpIPredicate with_sign, arith::CmpIPredicate without, Value a,
                Value c) const {
    if (floating()) return b.make<arith::CmpFOp>(real, a, c);
    return b.make<arith::CmpIOp>(is_signed() ? with_sign : without, a, c);
  }
  Value less(Value a, Value c) const {
    return compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult, a, c);
  }
  Value equal(Value a, Value c) const {
    return compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq, a, c);
  }
  Value unordered(Value a) const { return b.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a); }
};

using rule = Value (*)(const call&);

template <class Float, class Integer>
Value arithmetic(const call& c) {
  return c.floating() ? c.make<Float>(c.x[0], c.x[1]) : c.make<Integer>(c.x[0], c.x[1]);
}

template <class Op>
Value binary(const call& c) {
  return c.make<Op>(c.x[0], c.x[1]);
}

// Returns true if the target's approximate form of a function is precise enough, which holds for f16. It is not used
// for bf16, which has the range of f32: some approximations do not cover it.
bool takes_fast_form(const call& c) { return c.b.on.function && c.type == element_type::f16; }

// A function that MLIR expands for f32 where the target has no form of its own. For f64, libm is called.
template <class Op>
Value expanded(const call& c, const char* name) {
  if (takes_fast_form(c)) return call_libm(c.b, std::string(name) + ".fast", c.x);
  if (c.b.on.function || c.type == element_type::f64) return call_libm(c.b, name, c.x);
  if (c.b.on.vector_function)
    if (Value own = c.b.on.vector_function(c.b, name, c.x)) return own;
  return c.make<Op>(c.x[0]);
}

// Integer division or remainder. Returns 0 if the divisor is 0, and does not trap for the smallest number divided by
// -1.
template <class Signed, class Unsigned>
Value guarded(const call& c, Value a, Value divisor, bool remainder) {
  Value zero = c.number(0), one = c.number(1);
  Value by_zero = c.equal(divisor, zero);
  Value safe = c.b.select(by_zero, one, divisor);
  Value result;
  if (c.is_signed()) {
    Value minus = c.equal(divisor, c.number(-1));
    safe = c.b.select(minus, one, safe);
    result = c.make<Signed>(a, safe);
    result = c.b.select(minus, remainder ? zero : c.make<arith::SubIOp>(zero, a), result);
  } else {
    result = c.make<Unsigned>(a, safe);
  }
  return c.b.select(by_zero, zero, result);
}

Value truncated_remainder(const call& c) {
  if (c.floating()) return call_libm(c.b, "fmod", c.x);
  return guarded<arith::RemSIOp, arith::RemUIOp>(c, c.x[0], c.x[1], true);
}

Value floored_remainder(const call& c) {
  Value r = truncated_remainder(c), zero = c.number(0), y = c.x[1];
  if (!c.floating() && !c.is_signed()) return r;
  Value nonzero = c.floating() ? c.b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, r, zero).getResult()
                               : c.b.make<arith::CmpIOp>(arith::CmpIPredicate::ne, r, zero).getResult();
  Value differ = c.make<arith::XOrIOp>(c.less(r, zero), c.less(y, zero));
  Value sum = c.floating() ? c.make<arith::AddFOp>(r, y) : c.make<arith::AddIOp>(r, y);
  return c.b.select(c.make<arith::AndIOp>(nonzero, differ), sum, r);
}

// Returns the number that all lanes of a float value equal, if it is known.
std::optional<double> splat_number(Value v) {
  while (auto broadcast = v.getDefiningOp<mlir::vector::BroadcastOp>()) v = broadcast.getSource();
  auto constant = v.getDefiningOp<arith::ConstantOp>();
  if (!constant) return std::nullopt;
  if (auto number = mlir::dyn_cast<mlir::FloatAttr>(constant.getValue())) return number.getValueAsDouble();
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
      dense && dense.isSplat() && mlir::isa<mlir::FloatType>(dense.getElementType()))
    return dense.getSplatValue<llvm::APFloat>().convertToDouble();
  return std::nullopt;
}

Value square_root_power(const call& c) {
  // pow(-inf, 0.5) is inf, but sqrt(-inf) is NaN.
  Value infinity = c.number(std::numeric_limits<double>::infinity());
  Value magnitude = c.b.select(c.equal(c.x[0], c.number(-std::numeric_limits<double>::infinity())), infinity, c.x[0]);
  return c.make<math::SqrtOp>(magnitude);
}

Value integer_power(const call& c) {
  // Square-and-multiply over the bits of a non-negative exponent. For a negative exponent, returns the reference's
  // results.
  Value base = c.x[0], exponent = c.x[1], zero = c.number(0), one = c.number(1);
  std::int64_t bits = storage_bits(c.type);
  Value wide_one = one;
  values out = c.b.loop(0, bits, 1, {one, base, exponent}, [&](Value, std::span<const Value> s) {
    Value odd = c.b.equal(c.make<arith::AndIOp>(s[2], one), one);
    return values{c.b.select(odd, c.make<arith::MulIOp>(s[0], s[1]), s[0]), c.make<arith::MulIOp>(s[1], s[1]),
                  c.make<arith::ShRUIOp>(s[2], one)};
  });
  if (!c.is_signed()) return out[0];
  Value even = c.b.equal(c.make<arith::AndIOp>(exponent, one), zero);
  Value of_minus_one = c.b.select(even, one, c.number(-1));
  Value negative =
      c.b.select(c.b.equal(base, wide_one), one, c.b.select(c.b.equal(base, c.number(-1)), of_minus_one, zero));
  return c.b.select(c.less(exponent, zero), negative, out[0]);
}

Value power(const call& c) {
  if (!c.floating()) return integer_power(c);
  Value x = c.x[0];
  if (auto n = splat_number(c.x[1])) {
    Value square = c.make<arith::MulFOp>(x, x);
    if (*n == 1) return x;
    if (*n == 2) return square;
    if (*n == 3) return c.make<arith::MulFOp>(square, x);
    if (*n == 4) return c.make<arith::MulFOp>(square, square);
    if (*n == -1) return c.make<arith::DivFOp>(c.number(1), x);
    if (*n == 0.5) return square_root_power(c);
    if (*n == -0.5) return c.make<arith::DivFOp>(c.number(1), square_root_power(c));
    if (*n == 0.75) {
      Value root = square_root_power(c);
      return c.make<arith::MulFOp>(root, c.make<math::SqrtOp>(root));
    }
  }
  return call_libm(c.b, takes_fast_form(c) ? "pow.fast" : "pow", c.x);
}

Value shift(const call& c, bool left) {
  Value zero = c.number(0), width = c.number(storage_bits(c.type));
  // The comparison is unsigned, so negative shift amounts count as large ones.
  Value outside = c.b.make<arith::CmpIOp>(arith::CmpIPredicate::uge, c.x[1], width);
  Value by = c.b.select(outside, zero, c.x[1]);
  if (left) return c.b.select(outside, zero, c.make<arith::ShLIOp>(c.x[0], by));
  if (!c.is_signed()) return c.b.select(outside, zero, c.make<arith::ShRUIOp>(c.x[0], by));
  Value sign = c.b.select(c.less(c.x[0], zero), c.number(-1), zero);
  return c.b.select(outside, sign, c.make<arith::ShRSIOp>(c.x[0], by));
}

Value sign(const call& c) {
  Value x = c.x[0], zero = c.number(0), one = c.number(1);
  Value negative = !c.floating() && !c.is_signed() ? zero : c.b.select(c.less(x, zero), c.number(-1), zero);
  Value result = c.b.select(c.less(zero, x), one, negative);
  return c.floating() ? c.b.select(c.unordered(x), x, result) : result;
}

Value quotient(const call& c) {
  if (!c.floating()) return guarded<arith::DivSIOp, arith::DivUIOp>(c, c.x[0], c.x[1], false);
  if (takes_fast_form(c)) return call_libm(c.b, "div.fast", c.x);
  // Passes have replaced divisions by constants where products are exact enough (simplify_arithmetic).
  if (c.type == element_type::f32 || c.type == element_type::f64)
    return c.b.make<arith::DivFOp>(c.x[0], c.x[1], rounded_operations);
  return c.make<arith::DivFOp>(c.x[0], c.x[1]);
}

// Whether `x` is an integer as a float, less a zero point if it has one.
bool is_dequantized(Value x) {
  if (x.getDefiningOp<arith::SubFOp>() || x.getDefiningOp<arith::AddFOp>()) x = x.getDefiningOp()->getOperand(0);
  return x.getDefiningOp<arith::SIToFPOp>() || x.getDefiningOp<arith::UIToFPOp>();
}

// An integer times its scale is rounded before anything is added to it, as the model says. A quantizer often follows
// the sum and turns a last bit into a step of its own.
Value product(const call& c) {
  if (c.type == element_type::f32 && (is_dequantized(c.x[0]) || is_dequantized(c.x[1])))
    return c.b.make<arith::MulFOp>(c.x[0], c.x[1], rounded_operations);
  return arithmetic<arith::MulFOp, arith::MulIOp>(c);
}

Value sigmoid(const call& c) {
  if (takes_fast_form(c)) return call_libm(c.b, "sigmoid.fast", c.x);
  Value one = c.number(1);
  return c.make<arith::DivFOp>(one, c.make<arith::AddFOp>(one, exponential(c.b, c.make<arith::NegFOp>(c.x[0]))));
}

Value logical_not(const call& c) { return c.make<arith::XOrIOp>(c.x[0], c.b.integer(c.value_type(), 1)); }

Value clamp(const call& c) {
  Value x = c.x[0], low = c.x[1], high = c.x[2];
  return c.b.select(c.less(x, low), smaller(c.b, c.type, low, high), c.b.select(c.less(high, x), high, x));
}

#define LIBM(name) +[](const call& c) { return call_libm(c.b, #name, c.x); }
#define EXPANDED(Op, name) +[](const call& c) { return expanded<math::Op>(c, name); }
#define FLOAT_UNARY(Op) +[](const call& c) { return c.make<math::Op>(c.x[0]); }

rule find_rule(scalar_function function) {
  using enum scalar_function;
  switch (function) {
    case add: return arithmetic<arith::AddFOp, arith::AddIOp>;
    case sub: return arithmetic<arith::SubFOp, arith::SubIOp>;
    case mul: return product;
    case div: return quotient;
    case pow: return power;
    case min: return +[](const call& c) { return smaller(c.b, c.type, c.x[0], c.x[1]); };
    case max: return +[](const call& c) { return larger(c.b, c.type, c.x[0], c.x[1]); };
    case mod: return floored_remainder;
    case fmod: return truncated_remainder;
    case prelu:
      return +[](const call& c) {
        return c.b.select(c.less(c.x[0], c.number(0)), arithmetic<arith::MulFOp, arith::MulIOp>(c), c.x[0]);
      };
    case bit_and:
    case logical_and: return binary<arith::AndIOp>;
    case bit_or:
    case logical_or: return binary<arith::OrIOp>;
    case bit_xor:
    case logical_xor: return binary<arith::XOrIOp>;
    case shift_left: return +[](const call& c) { return shift(c, true); };
    case shift_right: return +[](const call& c) { return shift(c, false); };
    case equal: return +[](const call& c) { return c.equal(c.x[0], c.x[1]); };
    case less: return +[](const call& c) { return c.less(c.x[0], c.x[1]); };
    case greater: return +[](const call& c) { return c.less(c.x[1], c.x[0]); };
    case less_equal:
      return +[](const call& c) {
        return c.compare(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule, c.x[0],
                         c.x[1]);
      };
    case greater_equal:
      return +[](const call& c) {
        return c.compare(arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge, c.x[0],
                         c.x[1]);
      };
    case scalar_function::logical_not: return kiln::codegen::logical_not;
    case is_nan: return +[](const call& c) { return c.unordered(c.x[0]); };
    case is_inf:
      return +[](const call& c) {
        return c.equal(c.make<math::AbsFOp>(c.x[0]), c.number(std::numeric_limits<double>::infinity()));
      };
    case abs:
      return +[](const call& c) {
        if (c.floating()) return c.make<math::AbsFOp>(c.x[0]);
        return c.is_signed()
                   ? c.b.select(c.less(c.x[0], c.number(0)), c.make<arith::SubIOp>(c.number(0), c.x[0]), c.x[0])
                   : c.x[0];
      };
    case neg:
      return +[](const call& c) {
        return c.floating() ? c.make<arith::NegFOp>(c.x[0]) : c.make<arith::SubIOp>(c.number(0), c.x[0]);
      };
    case scalar_function::sign: return kiln::codegen::sign;
    case bit_not: return +[](const call& c) { return c.make<arith::XOrIOp>(c.x[0], c.number(-1)); };
    case exp: return +[](const call& c) { return call_libm(c.b, takes_fast_form(c) ? "exp.fast" : "exp", c.x); };
    case log: return +[](const call& c) { return call_libm(c.b, takes_fast_form(c) ? "log.fast" : "log", c.x); };
    case sqrt: return FLOAT_UNARY(SqrtOp);
    case rsqrt: return +[](const call& c) { return c.make<arith::DivFOp>(c.number(1), c.make<math::SqrtOp>(c.x[0])); };
    case reciprocal: return +[](const call& c) { return c.make<arith::DivFOp>(c.number(1), c.x[0]); };
    case erf: return EXPANDED(ErfOp, "erf");
    case tanh: return EXPANDED(TanhOp, "tanh");
    case scalar_function::sigmoid: return kiln::codegen::sigmoid;
    case sin: return LIBM(sin);
    case cos: return LIBM(cos);
    case tan: return LIBM(tan);
    case asin: return LIBM(asin);
    case acos: return LIBM(acos);
    case atan: return LIBM(atan);
    case sinh: return LIBM(sinh);
    case cosh: return LIBM(cosh);
    case asinh: return LIBM(asinh);
    case acosh: return LIBM(acosh);
    case atanh: return LIBM(atanh);
    case floor: return FLOAT_UNARY(FloorOp);
    case ceil: return FLOAT_UNARY(CeilOp);
    case round: return FLOAT_UNARY(RoundEvenOp);
    case relu:
      return +[](const call& c) {
        return !c.floating() && !c.is_signed() ? c.x[0] : c.b.select(c.less(c.x[0], c.number(0)), c.number(0), c.x[0]);
      };
    case where: return +[](const call& c) { return c.b.select(c.x[0], c.x[1], c.x[2]); };
    case scalar_function::clamp: return kiln::codegen::clamp;
  }
  throw error(error_kind::unsupported, "no code for scalar function " + std::to_string(static_cast<int>(function)));
}

#undef LIBM
#undef EXPANDED
#undef FLOAT_UNARY

}  // namespace

Value apply(code_builder& code, scalar_function function, element_type type, std::span<const Value> operands) {
  return find_rule(function)(call{code, type, operands});
}

Value smaller(code_builder& b, element_type type, Value a, Value c) {
  if (is_float(type)) return b.make<arith::MinimumFOp>(a, c);
  if (type == element_type::boolean) return b.make<arith::AndIOp>(a, c);
  return is_signed_integer(type) ? b.make<arith::MinSIOp>(a, c).getResult() : b.make<arith::MinUIOp>(a, c).getResult();
}

Value larger(code_builder& b, element_type type, Value a, Value c) {
  if (is_float(type)) return b.make<arith::MaximumFOp>(a, c);
  if (type == element_type::boolean) return b.make<arith::OrIOp>(a, c);
  return is_signed_integer(type) ? b.make<arith::MaxSIOp>(a, c).getResult() : b.make<arith::MaxUIOp>(a, c).getResult();
}

Value exponential(code_builder& b, Value x) { return call_libm(b, "exp", std::span(&x, 1)); }

Value call_libm(code_builder& b, const std::string& function, std::span<const Value> operands) {
  if (b.on.function) return b.on.function(b, function, operands);
  if (b.on.vector_function)
    if (Value result = b.on.vector_function(b, function, operands)) return result;
  return call_libm_by_lane(b, function, operands);
}

Value call_libm_by_lane(code_builder& b, const std::string& function, std::span<const Value> operands) {
  mlir::Type scalar = b.scalar_of(operands[0]);
  std::string symbol = scalar.isF32() ? function + "f" : function;
  auto module = b.builder.getInsertionBlock()->getParentOp()->getParentOfType<mlir::ModuleOp>();
  auto callee = module.lookupSymbol<mlir::func::FuncOp>(symbol);
  if (!callee) {
    mlir::OpBuilder::InsertionGuard guard(b.builder);
    b.builder.setInsertionPointToStart(module.getBody());
    callee = b.make<mlir::func::FuncOp>(
        symbol, b.builder.getFunctionType(llvm::SmallVector<mlir::Type>(operands.size(), scalar), {scalar}));
    callee.setPrivate();
    // The function accesses no memory and always returns, so LLVM can merge calls with equal operands and hoist them
    // out of loops.
    callee->setAttr("llvm.will_return", b.builder.getUnitAttr());
  }
  values lanes;
  for (std::int64_t i = 0; i < b.lanes_of(operands[0]); ++i) {
    llvm::SmallVector<Value> arguments;
    for (Value operand : operands) arguments.push_back(b.lane(operand, i));
    lanes.push_back(b.make<mlir::func::CallOp>(callee, arguments).getResult(0));
  }
  return b.from_lanes(lanes);
}

namespace {

// llvm.fptosi.sat without its form for vectors, which LLVM splits into scalars on a CPU.
Value saturated_lanes(code_builder& b, Value v, int width) {
  mlir::Type type = b.with_lanes(b.builder.getIntegerType(static_cast<unsigned>(width)), b.lanes_of(v));
  const double end = std::ldexp(1.0, width - 1);  // the first float that is too large
  const double last = b.scalar_of(v).isF32() ? std::nextafterf(static_cast<float>(end), 0) : std::nextafter(end, 0);
  auto compare = [&](arith::CmpFPredicate how, double with) {
    return b.make<arith::CmpFOp>(how, v, b.number(v.getType(), with)).getResult();
  };
  Value inside = b.select(compare(arith::CmpFPredicate::OGE, -end), v, b.number(v.getType(), -end));
  inside = b.select(compare(arith::CmpFPredicate::OGE, end), b.number(v.getType(), last), inside);
  inside = b.select(compare(arith::CmpFPredicate::UNO, 0), b.number(v.getType(), 0), inside);
  const std::int64_t most =
      width == 64 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
  return b.select(compare(arith::CmpFPredicate::OGE, end), b.integer(type, most),
                  b.make<arith::FPToSIOp>(type, inside).getResult());
}

// Converts floats to integers. NaN becomes 0. Values saturate at 64 bits for 64-bit types; for other types they
// saturate at 32 bits and then wrap.
Value float_to_integer(code_builder& b, Value v, element_type to) {
  std::int64_t lanes = b.lanes_of(v);
  bool wide = storage_bits(to) == 64 || to == element_type::u32;
  mlir::Type type = b.with_lanes(b.builder.getIntegerType(wide ? 64 : 32), lanes);
  Value saturated;
  if (lanes > 1 && to != element_type::u64 && !b.on.function) {
    saturated = saturated_lanes(b, v, wide ? 64 : 32);
  } else {
    const char* name = to == element_type::u64 ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
    saturated =
        b.make<mlir::LLVM::CallIntrinsicOp>(type, b.builder.getStringAttr(name), mlir::ValueRange{v}).getResult(0);
  }
  mlir::Type target = b.type(to, lanes);
  return target == type ? saturated : b.make<arith::TruncIOp>(target, saturated).getResult();
}

// Returns true if values of the type are computed in f32 and must be rounded to the type.
bool is_rounded(element_type type) { return is_float(type) && storage_bits(type) <= 16; }

}  // namespace

// For saturating conversions on a CPU, LLVM splits vectors into scalars. Values in range need no saturation.
Value float_in_range_to_integer(code_builder& b, Value v, element_type to) {
  std::int64_t lanes = b.lanes_of(v);
  Value number = b.make<arith::CmpFOp>(arith::CmpFPredicate::ORD, v, v);
  Value finite = b.select(number, v, b.number(v.getType(), 0));
  mlir::Type wide = b.with_lanes(b.builder.getIntegerType(32), lanes), target = b.type(to, lanes);
  Value converted = b.make<arith::FPToSIOp>(wide, finite);
  return target == wide ? converted : b.make<arith::TruncIOp>(target, converted).getResult();
}

Value convert_element(code_builder& b, Value v, element_type from, element_type to) {
  if (from == to) return v;
  if (from == element_type::f4e2m1) return convert_element(b, small_float_to_f32(b, v, from), element_type::f32, to);
  if (to == element_type::f4e2m1) {
    Value codes = f32_to_small_float(b, convert_element(b, v, from, element_type::f32), to);
    return b.make<arith::TruncIOp>(b.type(to, b.lanes_of(codes)), codes);
  }
  if (is_packed(from)) return convert_packed(b, v, from, to);
  std::int64_t lanes = b.lanes_of(v);
  mlir::Type target = b.type(to, lanes);
  if (is_float(from)) {
    if (to == element_type::boolean)
      return b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, v, b.number(v.getType(), 0));
    if (!is_float(to)) return float_to_integer(b, v, to);
    Value converted = v;
    if (from == element_type::f64 && to != element_type::f64) converted = b.make<arith::TruncFOp>(target, v);
    if (from != element_type::f64 && to == element_type::f64) converted = b.make<arith::ExtFOp>(target, v);
    return is_rounded(to) ? b.to_compute(b.to_storage(converted, to), to) : converted;
  }
  if (to == element_type::boolean) return b.make<arith::CmpIOp>(arith::CmpIPredicate::ne, v, b.integer(v.getType(), 0));
  if (is_float(to)) {
    Value converted = is_signed_integer(from) ? b.make<arith::SIToFPOp>(target, v).getResult()
                                              : b.make<arith::UIToFPOp>(target, v).getResult();
    return is_rounded(to) ? b.to_compute(b.to_storage(converted, to), to) : converted;
  }
  int width = from == element_type::boolean ? 1 : storage_bits(from);
  if (width == storage_bits(to)) return v;
  if (width > storage_bits(to)) return b.make<arith::TruncIOp>(target, v);
  return is_signed_integer(from) ? b.make<arith::ExtSIOp>(target, v).getResult()
                                 : b.make<arith::ExtUIOp>(target, v).getResult();
}

}  // namespace kiln::codegen
