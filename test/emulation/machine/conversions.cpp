// Vector operations that convert between types of numbers.
#include <algorithm>
#include <limits>

#include "numbers.hpp"
#include "operations.hpp"

namespace emulation {

namespace {

template <class T>
std::int32_t to_signed(T x) {
  if (x != x) return 0;
  if (x <= static_cast<T>(-2147483648.0)) return std::numeric_limits<std::int32_t>::min();
  if (x >= static_cast<T>(2147483648.0)) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(x);
}
template <class T>
std::uint32_t to_unsigned(T x) {
  if (!(x > static_cast<T>(0))) return 0;
  if (x >= static_cast<T>(4294967296.0)) return std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(x);
}

template <auto convert>
void packed_convert(wave& w, const instruction& i) {
  const source<float> a(w, i, 1), b(w, i, 2);
  alignas(64) lanes results;
  for (int l = 0; l < most_lanes; ++l) results[l] = convert(a.values[l]) | convert(b.values[l]) << 16;
  write_lanes(w, i, i.operands[0], 0, results);
}

}  // namespace

const std::vector<operation> conversions = {
    {"v_cvt_f32_i32", each<[](std::int32_t a) { return static_cast<float>(a); }>},
    {"v_cvt_f32_u32", each<[](std::uint32_t a) { return static_cast<float>(a); }>},
    {"v_cvt_i32_f32", each<[](float a) { return to_signed(a); }>},
    {"v_cvt_u32_f32", each<[](float a) { return to_unsigned(a); }>},
    {"v_cvt_rpi_i32_f32", each<[](float a) { return to_signed(std::floor(a + 0.5F)); }>},
    {"v_cvt_flr_i32_f32", each<[](float a) { return to_signed(std::floor(a)); }>},
    {"v_cvt_floor_i32_f32", each<[](float a) { return to_signed(std::floor(a)); }>},
    {"v_cvt_f16_f32", each<[](float a) { return static_cast<half>(a); }>},
    {"v_cvt_f32_f16", each<[](half a) { return static_cast<float>(a); }>},
    {"v_cvt_f32_bf16", each<[](std::uint16_t a) { return to_float(static_cast<std::uint32_t>(a) << 16); }>},
    {"v_cvt_f16_i16", each<[](std::int16_t a) { return static_cast<half>(a); }>},
    {"v_cvt_f16_u16", each<[](std::uint16_t a) { return static_cast<half>(a); }>},
    {"v_cvt_i16_f16", each<[](half a) {
       return static_cast<std::int16_t>(std::clamp(to_signed(static_cast<float>(a)), -32768, 32767));
     }>},
    {"v_cvt_u16_f16",
     each<[](half a) { return static_cast<std::uint16_t>(std::min(to_unsigned(static_cast<float>(a)), 65535U)); }>},
    {"v_cvt_f32_ubyte0", each<[](std::uint32_t a) { return static_cast<float>(a & 255); }>},
    {"v_cvt_f32_ubyte1", each<[](std::uint32_t a) { return static_cast<float>(a >> 8 & 255); }>},
    {"v_cvt_f32_ubyte2", each<[](std::uint32_t a) { return static_cast<float>(a >> 16 & 255); }>},
    {"v_cvt_f32_ubyte3", each<[](std::uint32_t a) { return static_cast<float>(a >> 24); }>},
    {"v_cvt_pk_f16_f32", packed_convert<[](float a) { return bits_of(static_cast<half>(a)); }>},
    {"v_cvt_pk_bf16_f32", packed_convert<[](float a) { return rounded_bfloat(a); }>},
    {"v_cvt_f64_f32", each<[](float a) { return static_cast<double>(a); }>},
    {"v_cvt_f32_f64", each<[](double a) { return static_cast<float>(a); }>},
    {"v_cvt_f64_i32", each<[](std::int32_t a) { return static_cast<double>(a); }>},
    {"v_cvt_f64_u32", each<[](std::uint32_t a) { return static_cast<double>(a); }>},
    {"v_cvt_i32_f64", each<[](double a) { return to_signed(a); }>},
    {"v_cvt_u32_f64", each<[](double a) { return to_unsigned(a); }>},
};

}  // namespace emulation
