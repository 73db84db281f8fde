// Exponentials, logarithms and functions built on them, erf and fmod. Coefficients of the f32 polynomials are minimax
// fits made for this file (relative error below 3e-8); those of erf and fast_erf are N. Juffa's. The f64 coefficients
// are fdlibm's (log) and Cephes' (tanh).
#include <array>
#include <limits>
#include <numbers>

#include "mlir_bridge/codegen/elementary_functions.hpp"

namespace kiln::codegen {

namespace arith = mlir::arith;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

struct format {
  int bits, mantissa, bias;
};
format format_of(bool wide) { return wide ? format{64, 52, 1023} : format{32, 23, 127}; }

}  // namespace

Value elementary_functions::polynomial(Value x, std::initializer_list<double> coefficients) const {
  Value result;
  for (double c : coefficients) result = result ? fma(result, x, number(x, c)) : number(x, c);
  return result;
}

Value elementary_functions::scale(Value x, Value n) const {
  format f = format_of(wide(x));
  auto power = [&](Value k) {
    return from_bits(b.make<arith::ShLIOp>(b.add(k, f.bias), b.integer(k.getType(), f.mantissa)), x);
  };
  Value half = b.make<arith::ShRSIOp>(n, b.integer(n.getType(), 1));
  return mul(mul(x, power(half)), power(b.sub(n, half)));
}

// e^x = 2^n * e^r with an integer n and |r| <= ln2 / 2. r is reduced in two steps.
Value elementary_functions::exp(Value x, int doublings) const {
  bool w = wide(x);
  Value low = number(x, w ? -746 : -105), high = number(x, w ? 711 : 90);
  Value clamped = select(less(x, low), low, select(less(high, x), high, x));
  Value n = round(mul(clamped, std::numbers::log2e));
  Value r = fma(n, w ? -6.93147180369123816490e-01 : -6.93145752e-01, clamped);
  r = fma(n, w ? -1.90821492927058770002e-10 : -1.42860677e-06, r);
  Value power;
  if (w) {
    power = polynomial(r, {1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.7557319223985893e-07,
                           2.755731922398589e-06, 2.48015873015873e-05, 1.984126984126984e-04, 1.388888888888889e-03,
                           8.333333333333333e-03, 4.1666666666666664e-02, 1.6666666666666666e-01, 0.5, 1, 1});
  } else if (hardware.exp2.empty()) {
    power =
        polynomial(r, {1.984126984e-04, 1.388888889e-03, 8.333333333e-03, 4.166666667e-02, 1.666666667e-01, 0.5, 1, 1});
  } else {
    power = fast_exp2(mul(r, std::numbers::log2e));
  }
  Value whole = to_integer(n);
  return select(is_nan(x), x, scale(power, doublings ? b.add(whole, doublings) : whole));
}

// As exp. n comes from adding a number with no bits for a fraction, and lies in the low bits of that sum, biased for
// 2^(n-1): 2^127 is the largest power that a float holds, so the result is doubled by the polynomial (2 * e^r) and
// overflows where it must. n <= -126 gives the bits of 0.
Value elementary_functions::flushed_exp(Value x) const {
  constexpr double bias = 126, no_fraction = 0x1.8p23 + bias;
  Value clamped = select(less(x, -87.5), number(x, -87.5), select(less(number(x, 88.75), x), number(x, 88.75), x));
  Value sum = fma(clamped, std::numbers::log2e, number(x, no_fraction)), n = sub(sum, number(x, no_fraction));
  Value r = fma(n, -1.42860677e-06, fma(n, -6.93145752e-01, clamped));
  Value power =
      polynomial(r, {2.762889256e-03, 1.673755795e-02, 8.333678544e-02, 3.333303928e-01, 9.999998808e-01, 2, 2});
  Value pattern = bits(sum);
  return mul(power, from_bits(b.make<arith::ShLIOp>(pattern, b.integer(pattern.getType(), 23)), x));
}

// x = 2^k * m with m in [sqrt(1/2), sqrt(2)).
Value elementary_functions::log(Value x) const {
  bool w = wide(x);
  format f = format_of(w);
  Value tiny = less(x, w ? 0x1p-1022 : 0x1p-126);
  Value pattern = bits(select(tiny, mul(x, w ? 0x1p54 : 0x1p25), x));
  mlir::Type integer = pattern.getType();
  Value from_half = b.sub(pattern, w ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  Value k = b.make<arith::ShRSIOp>(from_half, b.integer(integer, f.mantissa));
  Value m = from_bits(b.sub(pattern, b.make<arith::ShLIOp>(k, b.integer(integer, f.mantissa))), x);
  k = b.sub(k, b.select(tiny, b.integer(integer, w ? 54 : 25), b.integer(integer, 0)));
  Value n = to_float(k, x), y = sub(m, number(m, 1)), result;
  if (w) {
    Value s = div(y, add(y, 2.0)), z = mul(s, s), half = mul(mul(y, y), 0.5);
    Value r = mul(z, polynomial(z, {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                    6.666666666666735130e-01}));
    Value rest = fma(n, 1.90821492927058770002e-10, mul(s, add(half, r)));
    result = fma(n, 6.93147180369123816490e-01, sub(y, sub(half, rest)));
  } else {
    Value z = mul(y, y);
    Value p = polynomial(y, {7.334846806e-02, -1.165320649e-01, 1.163056211e-01, -1.239768498e-01, 1.425178009e-01,
                             -1.666910642e-01, 2.000065938e-01, -2.499998185e-01, 3.333333159e-01});
    Value r = mul(mul(y, z), p);
    r = fma(n, -2.12194440e-4, r);
    r = fma(z, -0.5, r);
    result = fma(n, 0.693359375, add(y, r));
  }
  result = select(equal(x, 0), number(x, -infinity), result);
  result = select(equal(x, infinity), x, result);
  return select(less(x, 0), number(x, nan), select(is_nan(x), x, result));
}

Value elementary_functions::log1p(Value x) const {
  // The rounding error of 1 + x is added back as a first-order term.
  Value sum = add(x, 1.0), lost = sub(x, sub(sum, number(x, 1)));
  Value result = log(sum), corrected = add(result, div(lost, sum));
  Value extreme = b.make<arith::OrIOp>(equal(sum, 0), equal(sum, infinity));
  return select(extreme, result, corrected);
}

Value elementary_functions::tanh(Value x) const {
  Value a = abs(x), z = mul(x, x), small;
  if (wide(x)) {
    Value p = polynomial(z, {-9.64399179425052238628E-1, -9.92877231001918586564E1, -1.61468768441708447952E3});
    Value q = polynomial(z, {1, 1.12811678491632931402E2, 2.23548839060100448583E3, 4.84406305325125486048E3});
    small = fma(mul(x, z), div(p, q), x);
  } else {
    small = fma(mul(x, z),
                polynomial(z, {2.373445036e-03, -8.412242219e-03, 2.178888623e-02, -5.396159633e-02, 1.333331277e-01,
                               -3.333333322e-01}),
                x);
  }
  Value large = sub(number(x, 1), div(number(x, 2), add(exp(mul(a, 2.0)), 1.0)));
  return select(less(a, 0.6), small, copy_sign(large, x));
}

Value elementary_functions::sinh(Value x) const {
  Value a = abs(x), z = mul(x, x), small;
  if (wide(x))
    small = fma(
        mul(x, z),
        polynomial(z, {2.8114572543455206e-15, 7.647163731819816e-13, 1.6059043836821613e-10, 2.505210838544172e-08,
                       2.7557319223985893e-06, 1.984126984126984e-04, 8.333333333333333e-03, 1.6666666666666666e-01}),
        x);
  else small = fma(mul(x, z), polynomial(z, {2.806351215e-06, 1.983809006e-04, 8.333339732e-03, 1.666666665e-01}), x);
  Value half = exp(a, -1);
  Value large = sub(half, div(number(x, 0.25), half));
  return select(less(a, 1.0), small, copy_sign(large, x));
}

Value elementary_functions::cosh(Value x) const {
  Value half = exp(abs(x), -1);
  return add(half, div(number(x, 0.25), half));
}

Value elementary_functions::asinh(Value x) const {
  Value a = abs(x), z = mul(a, a);
  Value small = log1p(add(a, div(z, add(sqrt(add(z, 1.0)), 1.0)))), large = add(log(a), std::numbers::ln2);
  return select(less(a, straight), x, copy_sign(select(less(a, 1e9), small, large), x));
}

Value elementary_functions::acosh(Value x) const {
  Value t = sub(x, number(x, 1));
  Value small = log1p(add(t, sqrt(fma(t, t, mul(t, 2.0))))), large = add(log(x), std::numbers::ln2);
  return select(less(x, 1.0), number(x, nan), select(less(x, 1e9), small, large));
}

Value elementary_functions::atanh(Value x) const {
  Value a = abs(x);
  return select(less(a, straight), x, copy_sign(mul(log1p(div(mul(a, 2.0), sub(number(x, 1), a))), 0.5), x));
}

namespace {

// Returns -log(1 - erf(t)), and erf(t) / t - 1 for small t.
Value erf_exponent(const elementary_functions& m, Value t) {
  Value s = m.mul(t, t);
  Value r = m.polynomial(t, {-1.72853470e-5, 3.83197126e-4}), u = m.polynomial(t, {-3.88396438e-3, 2.42546219e-2});
  r = m.fma(r, s, u);
  r = m.fma(r, t, m.number(t, -1.06777877e-1));
  r = m.fma(r, t, m.number(t, -6.34846687e-1));
  r = m.fma(r, t, m.number(t, -1.28717512e-1));
  return m.fma(r, t, m.neg(t));
}
Value erf_small(const elementary_functions& m, Value x) {
  Value p = m.polynomial(m.mul(x, x),
                         {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  return m.fma(p, x, x);
}
constexpr double erf_limit = 0.927734375;

}  // namespace

Value elementary_functions::erf(Value x) const {
  Value a = abs(x), large = sub(number(x, 1), exp(erf_exponent(*this, a)));
  return select(less(a, erf_limit), erf_small(*this, x), select(is_nan(x), x, copy_sign(large, x)));
}

// erf(x) / x is a polynomial in x^2, which is moved to [-1, 1]. At the limit and beyond, the result is exactly 1.
Value elementary_functions::polynomial_erf(Value x) const {
  constexpr double limit = 3.92;
  auto clamp = [&](Value v, double bound) {
    return select(less(v, -bound), number(v, -bound), select(less(number(v, bound), v), number(v, bound), v));
  };
  Value a = clamp(x, limit), t = fma(mul(a, a), 2 / (limit * limit), number(x, -1));
  Value p = polynomial(t, {-8.43933958e-4, 2.09875777e-3, -1.39451423e-3, 1.91997364e-3, -7.66056683e-3, 1.42099485e-2,
                           -1.99949984e-2, 2.96975691e-2, -4.34368737e-2, 5.83959967e-2, -7.4019812e-2, 9.05969739e-2,
                           -1.09179229e-1, 1.34084553e-1, -1.80108622e-1, 3.60736817e-1});
  return clamp(mul(p, a), 1);
}

Value elementary_functions::fast_erf(Value x) const {
  Value a = abs(x), large = sub(number(x, 1), fast_exp(erf_exponent(*this, a)));
  return select(less(a, erf_limit), erf_small(*this, x), select(is_nan(x), x, copy_sign(large, x)));
}

namespace {

// Completes pow from |x|^y: the sign and the special cases.
Value signed_power(const elementary_functions& m, Value x, Value y, Value magnitude) {
  code_builder& b = m.b;
  Value a = m.abs(x), whole = b.make<mlir::math::TruncOp>(y), half = m.mul(y, 0.5);
  Value is_whole = b.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, whole, y);
  Value odd = b.make<arith::AndIOp>(
      is_whole, b.make<arith::CmpFOp>(arith::CmpFPredicate::ONE, b.make<mlir::math::TruncOp>(half).getResult(), half)
                    .getResult());
  Value finite_negative = b.make<arith::AndIOp>(m.less(x, 0), m.less(m.number(x, -infinity), x));
  Value undefined = b.make<arith::AndIOp>(
      finite_negative, b.make<arith::XOrIOp>(is_whole, b.integer(is_whole.getType(), 1)).getResult());
  Value result = m.select(odd, m.copy_sign(magnitude, x), magnitude);
  result = m.select(undefined, m.number(x, nan), result);
  Value unit = b.make<arith::AndIOp>(m.equal(a, 1), m.equal(m.abs(y), infinity));
  result = m.select(unit, m.number(x, 1), result);
  result = m.select(m.is_nan(x), x, m.select(m.is_nan(y), y, result));
  return m.select(b.make<arith::OrIOp>(m.equal(y, 0), m.equal(x, 1)), m.number(x, 1), result);
}

}  // namespace

Value elementary_functions::pow(Value x, Value y) const {
  // For f32, the logarithm needs more digits than an f32 has.
  if (wide(x)) return signed_power(*this, x, y, exp(mul(y, log(abs(x)))));
  mlir::Type f64 = code_builder::with_lanes(b.builder.getF64Type(), code_builder::lanes_of(x));
  Value logarithm = log(b.make<arith::ExtFOp>(f64, abs(x))), power = exp(mul(b.make<arith::ExtFOp>(f64, y), logarithm));
  return signed_power(*this, x, y, b.make<arith::TruncFOp>(x.getType(), power));
}

Value elementary_functions::fast_pow(Value x, Value y) const {
  return signed_power(*this, x, y, fast_exp2(mul(y, each_lane(hardware.log2, abs(x)))));
}

// Long division of the mantissas. Each step produces as many bits as fit into an integer besides the divisor. Exact.
Value elementary_functions::fmod(Value x, Value y) const {
  bool w = wide(x);
  format f = format_of(w);
  mlir::Type i64 = b.builder.getI64Type();
  std::int64_t step = 63 - (f.mantissa + 1);
  const std::array operands{x, y};
  return by_lane(operands, [&](std::span<const Value> lane) {
    struct parts {
      Value mantissa, exponent;
    };
    auto split = [&](Value v) {
      Value tiny = less(v, w ? 0x1p-1022 : 0x1p-126);
      Value pattern = bits(select(tiny, mul(v, w ? 0x1p54 : 0x1p25), v));
      if (!w) pattern = b.make<arith::ExtUIOp>(i64, pattern);
      Value exponent = b.make<arith::ShRUIOp>(pattern, b.integer(i64, f.mantissa));
      exponent = b.sub(exponent, b.select(tiny, b.integer(i64, w ? 54 : 25), b.integer(i64, 0)));
      Value mantissa = b.make<arith::AndIOp>(pattern, b.integer(i64, (std::int64_t{1} << f.mantissa) - 1));
      return parts{b.make<arith::OrIOp>(mantissa, b.integer(i64, std::int64_t{1} << f.mantissa)), exponent};
    };
    Value a = abs(lane[0]), c = abs(lane[1]);
    parts dividend = split(a), divisor = split(c);
    Value difference = b.max(b.sub(dividend.exponent, divisor.exponent), 0);
    Value rest = b.rem(dividend.mantissa, divisor.mantissa);
    Value rounds = b.to_index(b.div(b.add(difference, step - 1), step));
    values state = b.loop(b.constant(0), rounds, 1, {rest, difference}, [&](Value, std::span<const Value> s) {
      Value by = b.min(s[1], step);
      return values{b.rem(b.make<arith::ShLIOp>(s[0], by).getResult(), divisor.mantissa), b.sub(s[1], by)};
    });
    Value mantissa = b.make<arith::UIToFPOp>(lane[0].getType(), state[0]);
    Value exponent = b.sub(divisor.exponent, f.bias + f.mantissa);
    if (!w) exponent = b.make<arith::TruncIOp>(b.builder.getI32Type(), exponent);
    Value result = copy_sign(scale(mantissa, exponent), lane[0]);
    result = select(less(a, c), lane[0], result);
    Value defined = b.make<arith::AndIOp>(less(a, infinity), less(number(c, 0), c));
    return select(defined, result, number(c, nan));
  });
}

}  // namespace kiln::codegen
