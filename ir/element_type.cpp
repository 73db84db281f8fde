#include "ir/element_type.hpp"

#include <array>
#include <bit>
#include <cmath>

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
    {"f64", 64, family::floating},
    {"f32", 32, family::floating},
    {"f16", 16, family::floating},
    {"bf16", 16, family::floating},
    {"f8e4m3", 8, family::floating},
    {"f8e5m2", 8, family::floating},
    {"i64", 64, family::signed_integer},
    {"i32", 32, family::signed_integer},
    {"i16", 16, family::signed_integer},
    {"i8", 8, family::signed_integer},
    {"i4", 4, family::signed_integer},
    {"u64", 64, family::unsigned_integer},
    {"u32", 32, family::unsigned_integer},
    {"u16", 16, family::unsigned_integer},
    {"u8", 8, family::unsigned_integer},
    {"u4", 4, family::unsigned_integer},
    {"bool", 8, family::boolean},
}};

constexpr const row& at(element_type type) { return table[static_cast<std::size_t>(type)]; }

// A binary floating-point format narrower than f32, with gradual underflow.
struct small_float {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  // f8e4m3 ("fn") has none: its top exponent holds numbers, and all ones is NaN
};
constexpr small_float half{5, 10, 15, true}, e5m2{5, 2, 15, true}, e4m3{4, 3, 7, false};

float widen(std::uint32_t bits, small_float f) {
  std::uint32_t sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  std::uint32_t exponent = bits >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  std::uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  std::uint32_t top = (1u << f.exponent_bits) - 1;
  float magnitude;
  if (exponent == top && f.has_infinity) magnitude = mantissa ? std::nanf("") : INFINITY;
  else if (exponent == top && mantissa == (1u << f.mantissa_bits) - 1) magnitude = std::nanf("");
  else if (exponent == 0) magnitude = std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits);
  else
    magnitude = std::ldexp(static_cast<float>(mantissa | 1u << f.mantissa_bits),
                           static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return sign ? -magnitude : magnitude;
}

std::uint32_t narrow(float value, small_float f) {
  std::uint32_t sign = std::signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  std::uint32_t top = (1u << f.exponent_bits) - 1;
  std::uint32_t infinity = top << f.mantissa_bits;
  std::uint32_t nan =
      f.has_infinity ? infinity | 1u << (f.mantissa_bits - 1) : infinity | ((1u << f.mantissa_bits) - 1);
  if (std::isnan(value)) return sign | nan;
  std::uint32_t overflow = f.has_infinity ? infinity : nan;
  float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | overflow;
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
  // The mantissa as an integer multiple of the spacing at this exponent, rounded to nearest even (the default mode).
  float scaled = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  auto units = static_cast<std::uint32_t>(scaled);
  std::uint32_t bits =
      units >= 1u << f.mantissa_bits
          ? (static_cast<std::uint32_t>(exponent + f.bias) << f.mantissa_bits) + (units - (1u << f.mantissa_bits))
          : units;
  return sign | (bits >= overflow ? overflow : bits);
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
  return is_float(type) && type != element_type::f64 ? element_type::f32 : type;
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

}  // namespace kiln
