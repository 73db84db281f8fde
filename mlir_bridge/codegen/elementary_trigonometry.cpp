// sin, cos, tan and their inverses for f32. Angles are reduced to a quadrant with pi/2 in three parts. Larger angles,
// for which that is not exact, are multiplied by the relevant bits of 2/pi (Payne and Hanek), as in N. Juffa's
// implementation.
#include <array>
#include <limits>
#include <numbers>

#include "mlir_bridge/codegen/elementary_functions.hpp"

namespace kiln::codegen {

namespace arith = mlir::arith;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double most_reduced_in_parts = 48000;
constexpr std::array<std::uint32_t, 7> two_over_pi{0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770,
                                                   0x36d8a566, 0x4f10e410, 0x7f9458ea};

}  // namespace

elementary_functions::reduced_angle elementary_functions::reduce_small_angle(Value x) const {
  Value j = round(mul(x, 2 / std::numbers::pi));
  Value r = fma(j, -0x1.921fb0p+00, x);
  r = fma(j, -0x1.5110b4p-22, r);
  r = fma(j, -0x1.846988p-48, r);
  return {r, to_integer(j)};
}

elementary_functions::reduced_angle elementary_functions::reduce_angle(Value x) const {
  mlir::Type i32 = b.builder.getI32Type(), i64 = b.builder.getI64Type();
  auto in_parts = [&] {
    reduced_angle angle = reduce_small_angle(x);
    return values{angle.remainder, angle.quadrant};
  };
  auto by_bits = [&] {
    auto number32 = [&](std::int64_t v) { return b.integer(i32, v); };
    auto number64 = [&](std::int64_t v) { return b.integer(i64, v); };
    auto wide64 = [&](Value v) { return b.make<arith::ExtUIOp>(i64, v).getResult(); };
    auto left = [&](Value v, Value n) { return b.make<arith::ShLIOp>(v, n).getResult(); };
    auto right = [&](Value v, Value n) { return b.make<arith::ShRUIOp>(v, n).getResult(); };
    auto either = [&](Value v, Value n) { return b.make<arith::OrIOp>(v, n).getResult(); };
    Value pattern = b.make<arith::AndIOp>(bits(x), number32(0x7fffffff));
    Value exponent = b.sub(right(pattern, number32(23)), 126);
    Value mantissa = either(left(pattern, number32(8)), number32(static_cast<std::int32_t>(0x80000000)));
    Value word = right(exponent, number32(5)), shift = b.make<arith::AndIOp>(exponent, number32(31));
    // Words word - 1 to word + 2 of 2/pi; word is 0 to 4.
    auto word_at = [&](std::int64_t delta) {
      Value result = number32(0);
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(two_over_pi.size()); ++i)
        result = b.select(b.equal(word, number32(i - delta)),
                          number32(static_cast<std::int32_t>(two_over_pi[static_cast<std::size_t>(i)])), result);
      return result;
    };
    Value high = word_at(-1), middle = word_at(0), low = word_at(1), next = word_at(2);
    // Shifts pairs of words, so that a shift by 0 is no special case.
    auto joined = [&](Value a, Value c) {
      Value pair = either(left(wide64(a), number64(32)), wide64(c));
      return b.make<arith::TruncIOp>(i32, right(left(pair, wide64(shift)), number64(32))).getResult();
    };
    high = joined(high, middle), middle = joined(middle, low), low = joined(low, next);
    Value m = wide64(mantissa);
    Value product = right(b.mul(m, wide64(low)), number64(32));
    product = b.add(b.mul(m, wide64(middle)), product);
    product = b.add(left(wide64(b.mul(mantissa, high)), number64(32)), product);
    // The product is the angle in quadrants with 62 bits after the point: its nearest whole number is the quadrant, and
    // the signed rest is between -1/2 and 1/2.
    Value quadrant = b.make<arith::TruncIOp>(i32, right(b.add(product, number64(std::int64_t{1} << 61)), number64(62)));
    Value rest = b.make<arith::AndIOp>(product, number64((std::int64_t{1} << 62) - 1));
    rest = b.sub(rest, b.select(b.make<arith::CmpIOp>(arith::CmpIPredicate::uge, rest, number64(std::int64_t{1} << 61)),
                                number64(std::int64_t{1} << 62), number64(0)));
    Value angle = b.make<arith::MulFOp>(b.make<arith::SIToFPOp>(b.builder.getF64Type(), rest).getResult(),
                                        b.number(b.builder.getF64Type(), 0x1.921fb54442d18p-62));
    Value r = b.make<arith::TruncFOp>(x.getType(), angle);
    Value negative = less(x, 0);
    return values{select(negative, neg(r), r), b.select(negative, b.sub(number32(0), quadrant), quadrant)};
  };
  values result = b.branch(less(abs(x), most_reduced_in_parts), in_parts, by_bits);
  return {select(less(abs(x), infinity), result[0], number(x, nan)), result[1]};
}

Value elementary_functions::sine_polynomial(Value r) const {
  Value z = mul(r, r);
  return fma(mul(r, z), polynomial(z, {2.725004243e-06, -1.984008788e-04, 8.333331878e-03, -1.666666666e-01}), r);
}

Value elementary_functions::cosine_polynomial(Value r) const {
  Value z = mul(r, r);
  return fma(mul(z, z), polynomial(z, {-2.729878395e-07, 2.480057675e-05, -1.388888760e-03, 4.166666666e-02}),
             fma(z, -0.5, number(r, 1)));
}

namespace {

Value bit(code_builder& b, Value quadrant, std::int64_t mask) {
  return b.make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                               b.make<arith::AndIOp>(quadrant, b.integer(quadrant.getType(), mask)).getResult(),
                               b.integer(quadrant.getType(), 0));
}

}  // namespace

Value elementary_functions::of_angle(std::string_view name, Value x,
                                     const std::function<Value(Value, reduced_angle)>& body) const {
  if (!hardware.by_libm)
    return by_lane(std::span(&x, 1), [&](std::span<const Value> lane) { return body(lane[0], reduce_angle(lane[0])); });
  Value all_small = b.horizontal(mlir::vector::CombiningKind::AND, less(abs(x), most_reduced_in_parts));
  return b.branch(
      all_small, [&] { return values{body(x, reduce_small_angle(x))}; },
      [&] { return values{hardware.by_libm(b, name, std::span(&x, 1))}; })[0];
}

Value elementary_functions::sin(Value x) const {
  return of_angle("sin", x, [&](Value, reduced_angle angle) {
    auto [r, quadrant] = angle;
    Value y = select(bit(b, quadrant, 1), cosine_polynomial(r), sine_polynomial(r));
    return select(bit(b, quadrant, 2), neg(y), y);
  });
}

Value elementary_functions::cos(Value x) const {
  return of_angle("cos", x, [&](Value, reduced_angle angle) {
    auto [r, quadrant] = angle;
    Value y = select(bit(b, quadrant, 1), sine_polynomial(r), cosine_polynomial(r));
    return select(bit(b, b.add(quadrant, 1), 2), neg(y), y);
  });
}

Value elementary_functions::tan(Value x) const {
  return of_angle("tan", x, [&](Value one, reduced_angle angle) {
    auto [r, quadrant] = angle;
    Value s = sine_polynomial(r), c = cosine_polynomial(r), odd = bit(b, quadrant, 1);
    Value y = div(select(odd, neg(c), s), select(odd, s, c));
    return select(less(abs(one), straight), one, y);
  });
}

Value elementary_functions::atan(Value x) const {
  Value a = abs(x), inverted = less(number(x, 1), a);
  Value t = select(inverted, div(number(x, 1), a), a), z = mul(t, t);
  Value p = fma(mul(t, z),
                polynomial(z, {-2.499883559e-03, 1.395986442e-02, -3.660684809e-02, 6.312398444e-02, -8.686007832e-02,
                               1.104113924e-01, -1.427947633e-01, 1.999978030e-01, -3.333333194e-01}),
                t);
  Value quarter = add(sub(number(x, 1.57079637050628662), p), -4.37113883e-8);
  return copy_sign(select(inverted, quarter, p), x);
}

namespace {

// asin(t) for 0 <= t <= 1/2, z = t * t.
Value small_arcsine(const elementary_functions& m, Value t, Value z) {
  return m.fma(m.mul(t, z),
               m.polynomial(z, {3.400788374e-02, 1.694568762e-02, 3.114708121e-02, 4.459494640e-02, 7.500110788e-02,
                                1.666666620e-01}),
               t);
}

}  // namespace

Value elementary_functions::asin(Value x) const {
  Value a = abs(x), large = less(number(x, 0.5), a);
  Value z = select(large, fma(a, -0.5, number(x, 0.5)), mul(a, a)), t = select(large, sqrt(z), a);
  Value p = small_arcsine(*this, t, z);
  Value result = select(large, add(fma(p, -2, number(x, 1.57079637050628662)), -4.37113883e-8), p);
  return copy_sign(result, x);
}

Value elementary_functions::acos(Value x) const {
  Value a = abs(x), large = less(number(x, 0.5), a);
  Value z = select(large, fma(a, -0.5, number(x, 0.5)), mul(a, a)), t = select(large, sqrt(z), a);
  Value p = small_arcsine(*this, t, z), twice = mul(p, 2.0), negative = less(x, 0);
  Value outer = select(negative, add(sub(number(x, 3.14159274101257324), twice), -8.74227766e-8), twice);
  Value inner = add(sub(number(x, 1.57079637050628662), copy_sign(p, x)), -4.37113883e-8);
  return select(large, outer, inner);
}

}  // namespace kiln::codegen
