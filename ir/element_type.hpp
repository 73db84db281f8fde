// Element types of tensors: their names, widths, and conversions to and from double. int4, uint4 and the fp8 types are
// storage types: they can be stored, sliced and converted, but not computed with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

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
};

inline constexpr std::size_t element_type_count = 17;

// "f32", "bf16", "f8e4m3", "i64", "u4", "bool", ...
std::string_view name(element_type type);
std::optional<element_type> parse_element_type(std::string_view text);

// Bits per element in memory. bool takes 8. i4 and u4 take 4: two elements per byte, the first in the low bits.
int storage_bits(element_type type);
// Bytes that `count` densely stored elements occupy.
std::size_t storage_bytes(element_type type, std::size_t count);

bool is_float(element_type type);
bool is_signed_integer(element_type type);
bool is_unsigned_integer(element_type type);
bool is_integer(element_type type);  // signed or unsigned, not bool

// The type in which arithmetic on `type` is done: f32 for f16, bf16 and fp8, otherwise the type itself.
element_type compute_type(element_type type);

// Conversions between bit patterns and values. Narrowing rounds to nearest even.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
float f8e4m3_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e4m3(float value);
float f8e5m2_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8e5m2(float value);

}  // namespace kiln
