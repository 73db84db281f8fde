// Vector operations on f32 and f64. What they compute is in AMD's ISA documents; NaN and denormal results are those of
// this machine.
#include <algorithm>
#include <limits>

#include "numbers.hpp"
#include "operations.hpp"

namespace emulation {

namespace {

// What v_div_scale and v_div_fmas depend on, for f32 and f64: `far`, the difference of the exponents from which the
// denominator is scaled; `small_numerator`, the largest exponent of a numerator that is scaled; `factor`, the exponent
// of the factor; the bias of exponents, and the exponent of the smallest normal number.
struct division {
  int far, small_numerator, factor, bias, smallest;
};
template <class T>
constexpr division division_of =
    std::is_same_v<T, float> ? division{96, 23, 64, 127, -126} : division{768, 53, 128, 1023, -1022};
int exponent(float x) { return static_cast<int>(bits_of(x) >> 23 & 255); }
int exponent(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 2047); }

// v_div_scale (operands: result, vcc, number, denominator, numerator).
template <class T>
void divide_scale(wave& w, const instruction& i) {
  constexpr division d = division_of<T>;
  const source<T> s0(w, i, 2), s1(w, i, 3), s2(w, i, 4);
  alignas(64) std::array<T, most_lanes> results;
  std::uint64_t carry = 0;
  for (int l = 0; l < most_lanes; ++l) {
    const T x = s0.values[l], denominator = s1.values[l], numerator = s2.values[l];
    const auto is_tiny = [](long double v) { return v != 0 && std::fabs(v) < std::ldexp(1.0L, d.smallest); };
    const long double inverse = 1.0L / denominator, quotient = static_cast<long double>(numerator) / denominator;
    T r = x;
    bool scaled = false;
    if (numerator == 0 || denominator == 0) r = std::numeric_limits<T>::quiet_NaN();
    else if (exponent(numerator) - exponent(denominator) >= d.far)
      scaled = true, r = x == denominator ? std::ldexp(x, d.factor) : x;
    else if (is_tiny(denominator)) r = std::ldexp(x, d.factor);
    else if (is_tiny(inverse) && is_tiny(quotient)) scaled = true, r = x == denominator ? std::ldexp(x, d.factor) : x;
    else if (is_tiny(inverse)) r = std::ldexp(x, -d.factor);
    else if (is_tiny(quotient)) scaled = true, r = x == numerator ? std::ldexp(x, d.factor) : x;
    else if (exponent(numerator) <= d.small_numerator) r = std::ldexp(x, d.factor);
    results[l] = r;
    carry |= static_cast<std::uint64_t>(scaled) << l;
  }
  write_result(w, i, i.operands[0], results);
  const std::uint64_t on = w.active();
  set_scalar_mask(w, i.operands[1], (scalar_mask(w, i.operands[1]) & ~on) | (carry & on));
}

template <class T>
void divide_fused(wave& w, const instruction& i) {
  constexpr division d = division_of<T>;
  const source<T> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  const std::uint64_t scaled = w.mask(vcc);
  alignas(64) std::array<T, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l) {
    const T x = std::fma(a.values[l], b.values[l], c.values[l]);
    results[l] = scaled >> l & 1 ? std::ldexp(x, exponent(c.values[l]) > d.bias ? d.factor : -d.factor) : x;
  }
  write_result(w, i, i.operands[0], results);
}

template <class T>
T divide_fixup(T quotient, T denominator, T numerator) {
  const double d = static_cast<double>(denominator), n = static_cast<double>(numerator);
  const bool negative = std::signbit(d) != std::signbit(n);
  const auto of_sign = [&](double x) { return static_cast<T>(negative ? -x : x); };
  if (n != n) return numerator;
  if (d != d) return denominator;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n)))
    return static_cast<T>(std::numeric_limits<double>::quiet_NaN());
  if (d == 0 || std::isinf(n)) return of_sign(std::numeric_limits<double>::infinity());
  if (std::isinf(d) || n == 0) return of_sign(0.0);
  if (std::is_same_v<T, float>) {
    const int difference = std::ilogb(n) - std::ilogb(d);
    if (difference < -150) return of_sign(0.0);
    if (difference > 128) return of_sign(std::numeric_limits<double>::infinity());
  }
  return of_sign(std::fabs(static_cast<double>(quotient)));
}

constexpr double pi = 3.14159265358979323846;

}  // namespace

const std::vector<operation> float_operations = {
    {"v_add_f32", each<[](float a, float b) { return a + b; }>},
    {"v_sub_f32", each<[](float a, float b) { return a - b; }>},
    {"v_subrev_f32", each<[](float a, float b) { return b - a; }>},
    {"v_mul_f32", each<[](float a, float b) { return a * b; }>},
    {"v_mul_legacy_f32", each<[](float a, float b) { return a == 0 || b == 0 ? 0.0F : a * b; }>},
    {"v_fma_f32", each<[](float a, float b, float c) { return fused(a, b, c); }>},
    {"v_fmac_f32", accumulate<float>},
    {"v_fmaak_f32", each<[](float a, float b, float c) { return fused(a, b, c); }>},
    {"v_fmamk_f32", each<[](float a, float b, float c) { return fused(a, b, c); }>},
    {"v_mad_f32", each<[](float a, float b, float c) { return a * b + c; }>},
    {"v_max_f32", each<[](float a, float b) { return greatest(a, b); }>},
    {"v_min_f32", each<[](float a, float b) { return least(a, b); }>},
    {"v_max_num_f32", each<[](float a, float b) { return greatest(a, b); }>},
    {"v_min_num_f32", each<[](float a, float b) { return least(a, b); }>},
    {"v_maximum_f32", each<[](float a, float b) { return maximum(a, b); }>},
    {"v_minimum_f32", each<[](float a, float b) { return minimum(a, b); }>},
    {"v_max3_f32", each<[](float a, float b, float c) { return greatest(greatest(a, b), c); }>},
    {"v_min3_f32", each<[](float a, float b, float c) { return least(least(a, b), c); }>},
    {"v_max3_num_f32", each<[](float a, float b, float c) { return greatest(greatest(a, b), c); }>},
    {"v_min3_num_f32", each<[](float a, float b, float c) { return least(least(a, b), c); }>},
    {"v_maximum3_f32", each<[](float a, float b, float c) { return maximum(maximum(a, b), c); }>},
    {"v_minimum3_f32", each<[](float a, float b, float c) { return minimum(minimum(a, b), c); }>},
    {"v_med3_f32", each<[](float a, float b, float c) { return greatest(least(a, b), least(greatest(a, b), c)); }>},
    {"v_med3_num_f32", each<[](float a, float b, float c) { return greatest(least(a, b), least(greatest(a, b), c)); }>},
    {"v_maxmin_f32", each<[](float a, float b, float c) { return least(greatest(a, b), c); }>},
    {"v_minmax_f32", each<[](float a, float b, float c) { return greatest(least(a, b), c); }>},
    {"v_maxmin_num_f32", each<[](float a, float b, float c) { return least(greatest(a, b), c); }>},
    {"v_minmax_num_f32", each<[](float a, float b, float c) { return greatest(least(a, b), c); }>},
    {"v_rcp_f32", each<[](float a) { return 1.0F / a; }>},
    {"v_rcp_iflag_f32", each<[](float a) { return 1.0F / a; }>},
    {"v_rsq_f32", each<[](float a) { return 1.0F / std::sqrt(a); }>},
    {"v_sqrt_f32", each<[](float a) { return std::sqrt(a); }>},
    {"v_exp_f32", each<[](float a) { return std::exp2(a); }>},
    {"v_log_f32", each<[](float a) { return std::log2(a); }>},
    {"v_sin_f32", each<[](float a) { return static_cast<float>(std::sin(2 * pi * static_cast<double>(a))); }>},
    {"v_cos_f32", each<[](float a) { return static_cast<float>(std::cos(2 * pi * static_cast<double>(a))); }>},
    {"v_floor_f32", each<[](float a) { return std::floor(a); }>},
    {"v_ceil_f32", each<[](float a) { return std::ceil(a); }>},
    {"v_trunc_f32", each<[](float a) { return std::trunc(a); }>},
    {"v_rndne_f32", each<[](float a) { return std::nearbyint(a); }>},
    {"v_fract_f32", each<[](float a) { return std::min(a - std::floor(a), 0x1.fffffep-1F); }>},
    {"v_ldexp_f32", each<[](float a, std::int32_t b) { return std::ldexp(a, b); }>},
    {"v_frexp_exp_i32_f32", each<[](float a) {
       int e = 0;
       if (std::isfinite(a)) std::frexp(a, &e);
       return e;
     }>},
    {"v_frexp_mant_f32", each<[](float a) {
       int e = 0;
       return std::isfinite(a) ? std::frexp(a, &e) : a;
     }>},
    {"v_div_scale_f32", divide_scale<float>},
    {"v_div_fmas_f32", divide_fused<float>},
    {"v_div_scale_f64", divide_scale<double>},
    {"v_div_fmas_f64", divide_fused<double>},
    {"v_fmac_f64", accumulate<double>},
    {"v_div_fixup_f32", each<[](float a, float b, float c) { return divide_fixup(a, b, c); }>},
    {"v_div_fixup_f16", each<[](half a, half b, half c) { return divide_fixup(a, b, c); }>},
    {"v_add_f64", each<[](double a, double b) { return a + b; }>},
    {"v_mul_f64", each<[](double a, double b) { return a * b; }>},
    {"v_fma_f64", each<[](double a, double b, double c) { return std::fma(a, b, c); }>},
    {"v_max_f64", each<[](double a, double b) { return greatest(a, b); }>},
    {"v_min_f64", each<[](double a, double b) { return least(a, b); }>},
    {"v_max_num_f64", each<[](double a, double b) { return greatest(a, b); }>},
    {"v_min_num_f64", each<[](double a, double b) { return least(a, b); }>},
    {"v_rcp_f64", each<[](double a) { return 1.0 / a; }>},
    {"v_rsq_f64", each<[](double a) { return 1.0 / std::sqrt(a); }>},
    {"v_sqrt_f64", each<[](double a) { return std::sqrt(a); }>},
    {"v_floor_f64", each<[](double a) { return std::floor(a); }>},
    {"v_ceil_f64", each<[](double a) { return std::ceil(a); }>},
    {"v_trunc_f64", each<[](double a) { return std::trunc(a); }>},
    {"v_rndne_f64", each<[](double a) { return std::nearbyint(a); }>},
    {"v_ldexp_f64", each<[](double a, std::int32_t b) { return std::ldexp(a, b); }>},
    {"v_div_fixup_f64", each<[](double a, double b, double c) { return divide_fixup(a, b, c); }>},
};

}  // namespace emulation
