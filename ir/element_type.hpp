// Element types of tensors: their names, widths, and conversions to and from float. Types of fewer than 16 bits other
// than i8, u8 and bool are storage types: they can be stored, moved and converted, but not computed with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

// Files store these numbers. Add new types at the end.
enum class element_type : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  i4,
  u64,
  u32,
  u16,
  u8,
  u4,
  boolean,
  f8e4m3fnuz,  // 4 bits of exponent, 3 of mantissa; one zero, one NaN, no infinity
  f8e5m2fnuz,
  // A power of two from 2^-127 to 2^127, or NaN; the scale of a block in MX formats.
  f8e8m0,
  f4e2m1,  // 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
  i2,
  u2,
};

inline constexpr std::size_t element_type_count = 23;

// "f32", "bf16", "f8e4m3", "i64", "u4", "bool", ...
std::string_view name(element_type type);
std::optional<element_type> parse_element_type(std::string_view text);

// Bits per element in memory. bool takes 8. i4, u4 and f4e2m1 take 4: two elements per byte, the first in the low bits.
// i2 and u2 take 2: four elements per byte.
int storage_bits(element_type type);
// Bytes that `count` densely stored elements occupy.
std::size_t storage_bytes(element_type type, std::size_t count);

bool is_float(element_type type);
bool is_signed_integer(element_type type);
bool is_unsigned_integer(element_type type);
bool is_integer(element_type type);  // signed or unsigned, not bool

// Returns the type in which arithmetic on `type` is done: f32 for floats of 8 to 32 bits, otherwise the type itself.
element_type compute_type(element_type type);

// A binary floating-point format of at most 16 bits: a sign (except in f8e8m0), an exponent and a mantissa, with
// gradual underflow. How it spends the codes that IEEE 754 gives to infinity, NaN and -0:
//   ieee    the top exponent holds infinity and NaNs
//   fn      no infinity; all ones is NaN
//   fnuz    no infinity and no -0; the code of -0 is NaN
//   finite  neither infinity nor NaN: conversions saturate, and NaN becomes -0
enum class float_specials : std::uint8_t { ieee, fn, fnuz, finite };
struct float_format {
  int exponent_bits, mantissa_bits, bias;
  float_specials specials;
};
// Returns nullopt for all types but the floats of 4 and 8 bits that have a mantissa.
std::optional<float_format> small_float_format(element_type type);
// Returns the largest finite value of a floating-point type.
double largest_finite(element_type type);

// Convert between bit patterns and values. Narrowing rounds to nearest even, f8e8m0 to the nearest power of two with
// ties away from zero. A value out of range becomes infinity or, in formats without infinity, NaN.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
float f8e4m3_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e4m3(float value);
float f8e5m2_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e5m2(float value);
float f8e4m3fnuz_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e4m3fnuz(float value);
float f8e5m2fnuz_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e5m2fnuz(float value);
float f8e8m0_to_f32(std::uint8_t bits);
// Uses the magnitude; 0 becomes the smallest value.
std::uint8_t f32_to_f8e8m0(float value);
// Uses the low 4 bits.
float f4e2m1_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f4e2m1(float value);

}  // namespace kiln
