#include "mlir_bridge/codegen/small_floats.hpp"

#include <cmath>
#include <limits>

#include "ir/error.hpp"

namespace kiln::codegen {

namespace {

namespace arith = mlir::arith;
using compare = arith::CmpIPredicate;

constexpr std::int64_t infinity = 0x7f800000, quiet_nan = 0x7fc00000;
constexpr int f32_mantissa = 23, f32_bias = 127;

// Helper for integer arithmetic on lanes of i32.
struct words {
  code_builder& code;
  std::int64_t lanes;

  mlir::Type type() const { return code.with_lanes(code.builder.getI32Type(), lanes); }
  mlir::Type float_type() const { return code.with_lanes(code.builder.getF32Type(), lanes); }
  Value of(std::int64_t v) const { return code.integer(type(), v); }
  Value add(Value a, std::int64_t b) const { return code.make<arith::AddIOp>(a, of(b)); }
  Value left(Value a, int bits) const { return code.make<arith::ShLIOp>(a, of(bits)); }
  Value right(Value a, int bits) const { return code.make<arith::ShRUIOp>(a, of(bits)); }
  Value bits_and(Value a, std::int64_t b) const { return code.make<arith::AndIOp>(a, of(b)); }
  Value bits_or(Value a, Value b) const { return code.make<arith::OrIOp>(a, b); }
  Value is(compare how, Value a, std::int64_t b) const { return code.make<arith::CmpIOp>(how, a, of(b)); }
  Value select(Value condition, Value yes, Value no) const { return code.select(condition, yes, no); }
  Value as_float(Value bits) const { return code.make<arith::BitcastOp>(float_type(), bits); }
  Value as_bits(Value number) const { return code.make<arith::BitcastOp>(type(), number); }
  Value byte(Value a) const {
    return code.make<arith::TruncIOp>(code.with_lanes(code.builder.getIntegerType(8), lanes), a);
  }
};

float_format format_of(element_type type) {
  if (auto format = small_float_format(type)) return *format;
  throw error(error_kind::internal, std::string(name(type)) + " is not a small float");
}

std::int64_t sign_bit(float_format f) { return std::int64_t{1} << (f.exponent_bits + f.mantissa_bits); }
std::int64_t infinity_code(float_format f) { return sign_bit(f) - (std::int64_t{1} << f.mantissa_bits); }

// GPUs compute with f16, two numbers at a time.
bool has_half_arithmetic(const code_builder& code) { return code.on.global_space != 0; }

// An even number of f8e4m3 or f8e5m2 codes as f16, which has all of their values: two codes become the upper bytes of a
// word of 32 bits. f8e5m2 is f16 without its lower byte. f8e4m3 has one bit less of exponent, and a bias that is less
// by 8.
Value float8_to_f16(code_builder& code, Value codes, element_type type) {
  const std::int64_t lanes = code_builder::lanes_of(codes);
  llvm::SmallVector<std::int64_t> order;
  for (std::int64_t i = 0; i < lanes; ++i) order.append({lanes, i});
  Value zeros = code.integer(codes.getType(), 0);
  Value bytes = code.make<mlir::vector::ShuffleOp>(codes, zeros, order);
  words w{code, lanes / 2};
  Value bits = code.make<mlir::LLVM::BitcastOp>(w.type(), bytes);
  const mlir::Type halves = code.with_lanes(code.builder.getF16Type(), lanes);
  if (type == element_type::f8e5m2) return code.make<mlir::LLVM::BitcastOp>(halves, bits);
  bits = w.bits_or(w.bits_and(w.right(bits, 1), 0x3f803f80), w.bits_and(bits, 0x80008000));
  Value scaled = code.make<mlir::LLVM::BitcastOp>(halves, bits);
  Value number = code.make<arith::MulFOp>(scaled, code.number(halves, 256));
  // The code of NaN would be the next number.
  Value magnitude = code.make<mlir::math::AbsFOp>(number);
  Value is_nan = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, magnitude, code.number(halves, 480));
  return code.select(is_nan, code.number(halves, std::numeric_limits<double>::quiet_NaN()), number);
}

}  // namespace

Value small_float_to_f32(code_builder& code, Value codes, element_type type) {
  if (has_half_arithmetic(code) && code_builder::lanes_of(codes) % 2 == 0 &&
      code_builder::scalar_of(codes).isInteger(8) && (type == element_type::f8e4m3 || type == element_type::f8e5m2))
    return code.make<arith::ExtFOp>(code.with_lanes(code.builder.getF32Type(), code_builder::lanes_of(codes)),
                                    float8_to_f16(code, codes, type));
  words w{code, code_builder::lanes_of(codes)};
  Value bits = code.make<arith::ExtUIOp>(w.type(), codes);
  if (type == element_type::f8e8m0) {
    Value number = w.select(w.is(compare::eq, bits, 0), w.of(1 << (f32_mantissa - 1)), w.left(bits, f32_mantissa));
    return w.as_float(w.select(w.is(compare::eq, bits, 0xff), w.of(quiet_nan), number));
  }
  const float_format f = format_of(type);
  const int shift = f32_mantissa - f.mantissa_bits;
  Value magnitude = w.bits_and(bits, sign_bit(f) - 1);
  Value normal = w.add(w.left(magnitude, shift), std::int64_t{f32_bias - f.bias} << f32_mantissa);
  // A subnormal number is its code times the smallest number. The product is exact, and no f32 in it is subnormal (a
  // GPU may flush subnormal f32 to 0).
  Value count = code.make<arith::UIToFPOp>(w.float_type(), magnitude);
  Value smallest = code.number(w.float_type(), std::ldexp(1.0, 1 - f.bias - f.mantissa_bits));
  Value subnormal = w.as_bits(code.make<arith::MulFOp>(count, smallest));
  Value number = w.select(w.is(compare::ult, magnitude, std::int64_t{1} << f.mantissa_bits), subnormal, normal);
  switch (f.specials) {
    case float_specials::ieee: {
      Value special = w.bits_or(w.left(magnitude, shift), w.of(infinity));
      number = w.select(w.is(compare::uge, magnitude, infinity_code(f)), special, number);
      break;
    }
    case float_specials::fn:
      number = w.select(w.is(compare::eq, magnitude, sign_bit(f) - 1), w.of(quiet_nan), number);
      break;
    case float_specials::fnuz: number = w.select(w.is(compare::eq, bits, sign_bit(f)), w.of(quiet_nan), number); break;
    case float_specials::finite: break;
  }
  return w.as_float(w.bits_or(number, w.left(w.bits_and(bits, sign_bit(f)), 31 - f.exponent_bits - f.mantissa_bits)));
}

Value f32_to_small_float(code_builder& code, Value numbers, element_type type) {
  words w{code, code_builder::lanes_of(numbers)};
  Value bits = w.as_bits(numbers), magnitude = w.bits_and(bits, 0x7fffffff);
  if (type == element_type::f8e8m0) {
    Value rounded = w.right(w.add(magnitude, 1 << (f32_mantissa - 1)), f32_mantissa);
    rounded = w.select(w.is(compare::ult, magnitude, 3 << (f32_mantissa - 2)), w.of(0), rounded);
    return w.byte(w.select(w.is(compare::ugt, rounded, 0xff), w.of(0xff), rounded));
  }
  const float_format f = format_of(type);
  const int shift = f32_mantissa - f.mantissa_bits;
  Value odd = w.bits_and(w.right(magnitude, shift), 1);
  Value carried = w.add(code.make<arith::AddIOp>(magnitude, odd), (std::int64_t{1} << (shift - 1)) - 1);
  Value normal = w.add(w.right(carried, shift), -(std::int64_t{f32_bias - f.bias} << f.mantissa_bits));
  // Near 2^exponent the spacing of f32 equals the smallest number of the format, so adding 2^exponent rounds the value
  // to a multiple of it.
  const int exponent = f32_mantissa + 1 - f.bias - f.mantissa_bits;
  Value raised =
      code.make<arith::AddFOp>(w.as_float(magnitude), code.number(w.float_type(), std::ldexp(1.0, exponent)));
  Value subnormal = w.add(w.as_bits(raised), -(std::int64_t{f32_bias + exponent} << f32_mantissa));
  Value is_subnormal = w.is(compare::ult, magnitude, std::int64_t{f32_bias - f.bias + 1} << f32_mantissa);
  Value result = w.select(is_subnormal, subnormal, normal);

  const std::int64_t all_ones = sign_bit(f) - 1;
  std::int64_t largest = all_ones, overflow = all_ones, nan = all_ones;
  if (f.specials == float_specials::ieee)
    largest = infinity_code(f) - 1, overflow = infinity_code(f),
    nan = overflow | std::int64_t{1} << (f.mantissa_bits - 1);
  if (f.specials == float_specials::fn) largest = all_ones - 1;
  if (f.specials == float_specials::fnuz) overflow = nan = sign_bit(f);
  if (f.specials == float_specials::finite) nan = sign_bit(f);
  result = w.select(w.is(compare::sgt, result, largest), w.of(overflow), result);
  result = w.select(w.is(compare::ugt, magnitude, infinity), w.of(nan), result);
  Value sign = w.left(w.right(bits, 31), f.exponent_bits + f.mantissa_bits);
  if (f.specials == float_specials::fnuz) sign = w.select(w.is(compare::eq, result, 0), w.of(0), sign);
  return w.byte(w.bits_or(result, sign));
}

}  // namespace kiln::codegen
