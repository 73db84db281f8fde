#include "python/extension/element_types.hpp"

#include <array>
#include <cstring>
#include <string>

namespace kiln::python {
namespace {

using code = nanobind::dlpack::dtype_code;
using nanobind::dlpack::dtype;

constexpr dtype make(code c, int bits) { return {static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(bits), 1}; }

// The packed types have one element per byte outside of Kiln: kiln/arrays.py packs and unpacks them.
constexpr std::array<element_type_row, KILN_U2 + 1> rows{{
    {KILN_F64, "f64", "float64", make(code::Float, 64), false},
    {KILN_F32, "f32", "float32", make(code::Float, 32), false},
    {KILN_F16, "f16", "float16", make(code::Float, 16), false},
    {KILN_BF16, "bf16", "bfloat16", make(code::Bfloat, 16), true},
    {KILN_F8E4M3, "f8e4m3", "float8_e4m3fn", make(code::Float8_E4M3FN, 8), true},
    {KILN_F8E5M2, "f8e5m2", "float8_e5m2", make(code::Float8_E5M2, 8), true},
    {KILN_I64, "i64", "int64", make(code::Int, 64), false},
    {KILN_I32, "i32", "int32", make(code::Int, 32), false},
    {KILN_I16, "i16", "int16", make(code::Int, 16), false},
    {KILN_I8, "i8", "int8", make(code::Int, 8), false},
    {KILN_I4, "i4", "int4", make(code::Int, 4), false},
    {KILN_U64, "u64", "uint64", make(code::UInt, 64), false},
    {KILN_U32, "u32", "uint32", make(code::UInt, 32), false},
    {KILN_U16, "u16", "uint16", make(code::UInt, 16), false},
    {KILN_U8, "u8", "uint8", make(code::UInt, 8), false},
    {KILN_U4, "u4", "uint4", make(code::UInt, 4), false},
    {KILN_BOOL, "bool", "bool", make(code::Bool, 8), false},
    {KILN_F8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", make(code::Float8_E4M3FNUZ, 8), true},
    {KILN_F8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", make(code::Float8_E5M2FNUZ, 8), true},
    {KILN_F8E8M0, "f8e8m0", "float8_e8m0fnu", make(code::Float8_E8M0FNU, 8), true},
    {KILN_F4E2M1, "f4e2m1", "float4_e2m1fn", make(code::Float4_E2M1FN, 4), false},
    {KILN_I2, "i2", "int2", make(code::Int, 2), false},
    {KILN_U2, "u2", "uint2", make(code::UInt, 2), false},
}};

static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].type != static_cast<kiln_type>(i)) return false;
  return true;
}());

}  // namespace

std::span<const element_type_row> element_types() { return rows; }

dtype dtype_of_format(const char* format, std::size_t item_bytes) {
  if (!format) return make(code::UInt, 8);  // the protocol's default: bytes
  if (std::strchr("@=<", *format)) ++format;
  if (!*format || format[1]) return {};
  const int bits = static_cast<int>(item_bytes) * 8;
  if (*format == '?') return make(code::Bool, bits);
  if (std::strchr("bhilqn", *format)) return make(code::Int, bits);
  if (std::strchr("BHILQN", *format)) return make(code::UInt, bits);
  if (std::strchr("efd", *format)) return make(code::Float, bits);
  return {};
}

std::string name_of(dtype type) {
  for (const element_type_row& row : rows)
    if (row.dlpack == type) return row.array;
  return "a type with code " + std::to_string(type.code) + " and " + std::to_string(type.bits) + " bits";
}

bool fits(const element_type_row& row, dtype type) {
  return type == row.dlpack || (row.as_bits && type == make(code::UInt, row.dlpack.bits));
}

}  // namespace kiln::python
