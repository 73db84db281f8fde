#include "ir/element_type.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace kiln {
namespace {

enum class family : std::uint8_t { floating, signed_integer, unsigned_integer, boolean };

struct row {
  std::string_view name;
  std::uint8_t bits;
  family kind;
};

// Indexed by element_type.
constexpr std::array<row, element_type_count> table{{
    {"f64", 64, family::floating},         {"f32", 32, family::floating},         {"f16", 16, family::floating},
    {"bf16", 16, family::floating},        {"f8e4m3", 8, family::floating},       {"f8e5m2", 8, family::floating},
    {"i64", 64, family::signed_integer},   {"i32", 32, family::signed_integer},   {"i16", 16, family::signed_integer},
    {"i8", 8, family::signed_integer},     {"i4", 4, family::signed_integer},     {"u64", 64, family::unsigned_integer},
    {"u32", 32, family::unsigned_integer}, {"u16", 16, family::unsigned_integer}, {"u8", 8, family::unsigned_integer},
    {"u4", 4, family::unsigned_integer},   {"bool", 8, family::boolean},          {"f8e4m3fnuz", 8, family::floating},
    {"f8e5m2fnuz", 8, family::floating},   {"f8e8m0", 8, family::floating},       {"f4e2m1", 4, family::floating},
    {"i2", 2, family::signed_integer},     {"u2", 2, family::unsigned_integer},
}};

constexpr const row& at(element_type type) { return table[static_cast<std::size_t>(type)]; }

using enum float_specials;
constexpr float_format half{5, 10, 15, ieee}, e5m2{5, 2, 15, ieee}, e4m3{4, 3, 7, fn}, e4m3_fnuz{4, 3, 8, fnuz},
    e5m2_fnuz{5, 2, 16, fnuz}, e2m1{2, 1, 1, finite};

constexpr std::uint32_t sign_bit(float_format f) { return 1u << (f.exponent_bits + f.mantissa_bits); }
constexpr std::uint32_t infinity_bits(float_format f) { return sign_bit(f) - (1u << f.mantissa_bits); }

// Returns the code of the largest finite value.
constexpr std::uint32_t largest_bits(float_format f) {
  switch (f.specials) {
    case ieee: return infinity_bits(f) - 1;
    case fn: return sign_bit(f) - 2;
    default: return sign_bit(f) - 1;
  }
}

// Returns the codes that replace values beyond the largest one, and NaN.
constexpr std::uint32_t overflow_bits(float_format f) {
  switch (f.specials) {
    case ieee: return infinity_bits(f);
    case fnuz: return sign_bit(f);
    default: return sign_bit(f) - 1;
  }
}
constexpr std::uint32_t nan_bits(float_format f) {
  switch (f.specials) {
    case ieee: return infinity_bits(f) | 1u << (f.mantissa_bits - 1);
    case finite: return sign_bit(f);
    default: return overflow_bits(f);
  }
}

float widen(std::uint32_t bits, float_format f) {
  std::uint32_t magnitude_bits = bits & (sign_bit(f) - 1);
  bool negative = bits & sign_bit(f);
  if (f.specials == fnuz && bits == sign_bit(f)) return std::nanf("");
  std::uint32_t exponent = magnitude_bits >> f.mantissa_bits, mantissa = magnitude_bits & ((1u << f.mantissa_bits) - 1);
  float magnitude;
  if (magnitude_bits > largest_bits(f))
    magnitude = f.specials == ieee && magnitude_bits == infinity_bits(f) ? INFINITY : std::nanf("");
  else if (exponent == 0) magnitude = std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits);
  else
    magnitude = std::ldexp(static_cast<float>(mantissa | 1u << f.mantissa_bits),
                           static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

std::uint32_t narrow(float value, float_format f) {
  // In formats without -0, a zero or NaN loses its sign.
  auto signed_bits = [&](std::uint32_t bits) {
    bool has_sign = std::signbit(value) && !(f.specials == fnuz && (bits == 0 || bits == sign_bit(f)));
    return has_sign ? bits | sign_bit(f) : bits;
  };
  if (std::isnan(value)) return signed_bits(nan_bits(f));
  float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return signed_bits(overflow_bits(f));
  if (magnitude == 0) return signed_bits(0);
  int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
  // The mantissa as an integer multiple of the spacing at this exponent, rounded to nearest even (the default mode).
  float scaled = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  auto units = static_cast<std::uint32_t>(scaled);
  std::uint32_t bits =
      units >= 1u << f.mantissa_bits
          ? (static_cast<std::uint32_t>(exponent + f.bias) << f.mantissa_bits) + (units - (1u << f.mantissa_bits))
          : units;
  return signed_bits(bits > largest_bits(f) ? overflow_bits(f) : bits);
}

}  // namespace

std::string_view name(element_type type) { return at(type).name; }

std::optional<element_type> parse_element_type(std::string_view text) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].name == text) return static_cast<element_type>(i);
  return std::nullopt;
}

int storage_bits(element_type type) { return at(type).bits; }
std::size_t storage_bytes(element_type type, std::size_t count) {
  auto bits = static_cast<std::size_t>(at(type).bits);
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}
bool is_float(element_type type) { return at(type).kind == family::floating; }
bool is_signed_integer(element_type type) { return at(type).kind == family::signed_integer; }
bool is_unsigned_integer(element_type type) { return at(type).kind == family::unsigned_integer; }
bool is_integer(element_type type) { return is_signed_integer(type) || is_unsigned_integer(type); }
element_type compute_type(element_type type) {
  return is_float(type) && type != element_type::f64 && storage_bits(type) >= 8 ? element_type::f32 : type;
}

std::optional<float_format> small_float_format(element_type type) {
  switch (type) {
    case element_type::f8e4m3: return e4m3;
    case element_type::f8e5m2: return e5m2;
    case element_type::f8e4m3fnuz: return e4m3_fnuz;
    case element_type::f8e5m2fnuz: return e5m2_fnuz;
    case element_type::f4e2m1: return e2m1;
    default: return std::nullopt;
  }
}

double largest_finite(element_type type) {
  if (auto format = small_float_format(type)) return static_cast<double>(widen(largest_bits(*format), *format));
  switch (type) {
    case element_type::f8e8m0: return 0x1p127;
    case element_type::f16: return 65504;
    case element_type::bf16: return 0x1.fep127;
    case element_type::f32: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }
std::uint16_t f32_to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float f16_to_f32(std::uint16_t bits) {
  // Shift into f32's fields and rescale: exact for normals and subnormals. Infinity and NaN take the slow path.
  if ((bits & 0x7c00) == 0x7c00) return widen(bits, half);
  auto magnitude = std::bit_cast<float>(std::uint32_t(bits & 0x7fff) << 13) * 0x1p112f;
  return bits & 0x8000 ? -magnitude : magnitude;
}
std::uint16_t f32_to_f16(float value) { return static_cast<std::uint16_t>(narrow(value, half)); }
float f8e4m3_to_f32(std::uint8_t bits) { return widen(bits, e4m3); }
std::uint8_t f32_to_f8e4m3(float value) { return static_cast<std::uint8_t>(narrow(value, e4m3)); }
float f8e5m2_to_f32(std::uint8_t bits) { return widen(bits, e5m2); }
std::uint8_t f32_to_f8e5m2(float value) { return static_cast<std::uint8_t>(narrow(value, e5m2)); }
float f8e4m3fnuz_to_f32(std::uint8_t bits) { return widen(bits, e4m3_fnuz); }
std::uint8_t f32_to_f8e4m3fnuz(float value) { return static_cast<std::uint8_t>(narrow(value, e4m3_fnuz)); }
float f8e5m2fnuz_to_f32(std::uint8_t bits) { return widen(bits, e5m2_fnuz); }
std::uint8_t f32_to_f8e5m2fnuz(float value) { return static_cast<std::uint8_t>(narrow(value, e5m2_fnuz)); }
float f4e2m1_to_f32(std::uint8_t bits) { return widen(bits & 15u, e2m1); }
std::uint8_t f32_to_f4e2m1(float value) { return static_cast<std::uint8_t>(narrow(value, e2m1)); }

// The code equals the exponent field of an f32, except for 2^-127, which is subnormal in f32.
float f8e8m0_to_f32(std::uint8_t bits) {
  if (bits == 0xff) return std::nanf("");
  return std::bit_cast<float>(bits ? std::uint32_t(bits) << 23 : std::uint32_t(1) << 22);
}
std::uint8_t f32_to_f8e8m0(float value) {
  // Adds half of the mantissa's range, so that the carry rounds the exponent. This does not work for subnormal numbers:
  // those below 1.5 * 2^-127 become 2^-127.
  auto bits = std::bit_cast<std::uint32_t>(std::fabs(value));
  if (bits < 0x00600000) return 0;
  return static_cast<std::uint8_t>(std::min((bits + (1u << 22)) >> 23, 0xffu));
}

}  // namespace kiln
