// The definition of every scalar function, one row each: the element types it accepts and its value. Operands have the
// compute type of their element type (float for f16, bf16 and fp8). Transcendental functions of floats are computed in
// double. Integers wrap. Integer division truncates; division, mod and fmod by zero give 0. NaN propagates through
// everything except comparisons.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ir/reference/scalar_domain.hpp"

namespace kiln::reference {

// Unsigned 64-bit arithmetic for integers, so that overflow wraps; T itself for floats.
template <class T>
using wrapping = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

template <class T>
T through_double(T x, double (*f)(double)) {
  return static_cast<T>(f(static_cast<double>(x)));
}

template <class T>
bool is_nan_value(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  else return false;
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  else if (b == 0) return 0;
  else if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>(wrapping<T>(0) - wrapping<T>(a));
  else return static_cast<T>(a / b);
}

template <class T>
T truncated_remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
  else if (b == 0 || (std::is_signed_v<T> && b == T(-1))) return 0;
  else return static_cast<T>(a % b);
}

template <class T>
T floored_remainder(T a, T b) {
  T r = truncated_remainder(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
}

template <class T>
T power(T base, T exponent) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else {
    if (exponent < T(0)) return base == T(1) ? T(1) : base == T(-1) ? (exponent % 2 == 0 ? T(1) : T(-1)) : T(0);
    std::uint64_t result = 1, square = static_cast<std::uint64_t>(base);
    for (auto e = static_cast<std::uint64_t>(exponent); e; e >>= 1, square *= square)
      if (e & 1) result *= square;
    return static_cast<T>(result);
  }
}

template <class T>
T smaller(T a, T b) {
  return is_nan_value(a) || a < b ? a : b;
}

template <class T>
T larger(T a, T b) {
  return is_nan_value(a) || a > b ? a : b;
}

template <class T>
T sign_of(T x) {
  if (is_nan_value(x)) return x;
  return static_cast<T>((x > T(0)) - (x < T(0)));
}

template <class T>
T magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
  else return x < T(0) ? static_cast<T>(-wrapping<T>(x)) : x;
}

template <class T>
T shifted_left(T x, T by) {
  constexpr auto width = T(8 * sizeof(T));
  return by < T(0) || by >= width ? T(0) : static_cast<T>(static_cast<std::uint64_t>(x) << by);
}

template <class T>
T shifted_right(T x, T by) {
  constexpr auto width = T(8 * sizeof(T));
  if (by < T(0) || by >= width) return x < T(0) ? T(-1) : T(0);
  return static_cast<T>(x >> by);
}

template <scalar_function>
struct scalar_rule;

// KILN_RULE(function, domain, arguments, value)
#define KILN_RULE(FUNCTION, DOMAIN, ARGUMENTS, ...)                \
  template <>                                                      \
  struct scalar_rule<scalar_function::FUNCTION> {                  \
    static constexpr scalar_domain domain = scalar_domain::DOMAIN; \
    template <class T>                                             \
    static auto apply ARGUMENTS {                                  \
      return __VA_ARGS__;                                          \
    }                                                              \
  };

KILN_RULE(add, numeric, (T a, T b), static_cast<T>(wrapping<T>(a) + wrapping<T>(b)))
KILN_RULE(sub, numeric, (T a, T b), static_cast<T>(wrapping<T>(a) - wrapping<T>(b)))
KILN_RULE(mul, numeric, (T a, T b), static_cast<T>(wrapping<T>(a) * wrapping<T>(b)))
KILN_RULE(div, numeric, (T a, T b), divide(a, b))
KILN_RULE(pow, numeric, (T a, T b), power(a, b))
KILN_RULE(min, any, (T a, T b), smaller(a, b))
KILN_RULE(max, any, (T a, T b), larger(a, b))
KILN_RULE(mod, numeric, (T a, T b), floored_remainder(a, b))
KILN_RULE(fmod, numeric, (T a, T b), truncated_remainder(a, b))
KILN_RULE(prelu, numeric, (T x, T slope), x < T(0) ? static_cast<T>(wrapping<T>(x) * wrapping<T>(slope)) : x)
KILN_RULE(bit_and, integral, (T a, T b), static_cast<T>(a& b))
KILN_RULE(bit_or, integral, (T a, T b), static_cast<T>(a | b))
KILN_RULE(bit_xor, integral, (T a, T b), static_cast<T>(a ^ b))
KILN_RULE(shift_left, integral, (T a, T b), shifted_left(a, b))
KILN_RULE(shift_right, integral, (T a, T b), shifted_right(a, b))
KILN_RULE(equal, any, (T a, T b), a == b)
KILN_RULE(less, numeric, (T a, T b), a < b)
KILN_RULE(less_equal, numeric, (T a, T b), a <= b)
KILN_RULE(greater, numeric, (T a, T b), a > b)
KILN_RULE(greater_equal, numeric, (T a, T b), a >= b)
KILN_RULE(logical_and, logical, (T a, T b), a&& b)
KILN_RULE(logical_or, logical, (T a, T b), a || b)
KILN_RULE(logical_xor, logical, (T a, T b), a != b)
KILN_RULE(logical_not, logical, (T a), !a)
KILN_RULE(is_nan, floating, (T x), std::isnan(x))
KILN_RULE(is_inf, floating, (T x), std::isinf(x))
KILN_RULE(abs, numeric, (T x), magnitude(x))
KILN_RULE(neg, numeric, (T x), static_cast<T>(-wrapping<T>(x)))
KILN_RULE(sign, numeric, (T x), sign_of(x))
KILN_RULE(bit_not, integral, (T x), static_cast<T>(~x))
KILN_RULE(exp, floating, (T x), through_double(x, std::exp))
KILN_RULE(log, floating, (T x), through_double(x, std::log))
KILN_RULE(sqrt, floating, (T x), std::sqrt(x))
KILN_RULE(rsqrt, floating, (T x), static_cast<T>(1 / std::sqrt(static_cast<double>(x))))
KILN_RULE(reciprocal, floating, (T x), T(1) / x)
KILN_RULE(erf, floating, (T x), through_double(x, std::erf))
KILN_RULE(tanh, floating, (T x), through_double(x, std::tanh))
KILN_RULE(sigmoid, floating, (T x), static_cast<T>(1 / (1 + std::exp(-static_cast<double>(x)))))
KILN_RULE(sin, floating, (T x), through_double(x, std::sin))
KILN_RULE(cos, floating, (T x), through_double(x, std::cos))
KILN_RULE(tan, floating, (T x), through_double(x, std::tan))
KILN_RULE(asin, floating, (T x), through_double(x, std::asin))
KILN_RULE(acos, floating, (T x), through_double(x, std::acos))
KILN_RULE(atan, floating, (T x), through_double(x, std::atan))
KILN_RULE(sinh, floating, (T x), through_double(x, std::sinh))
KILN_RULE(cosh, floating, (T x), through_double(x, std::cosh))
KILN_RULE(asinh, floating, (T x), through_double(x, std::asinh))
KILN_RULE(acosh, floating, (T x), through_double(x, std::acosh))
KILN_RULE(atanh, floating, (T x), through_double(x, std::atanh))
KILN_RULE(floor, floating, (T x), std::floor(x))
KILN_RULE(ceil, floating, (T x), std::ceil(x))
KILN_RULE(round, floating, (T x), std::nearbyint(x))
KILN_RULE(relu, numeric, (T x), x < T(0) ? T(0) : x)
KILN_RULE(where, any, (bool condition, T a, T b), condition ? a : b)
KILN_RULE(clamp, numeric, (T x, T low, T high), x<low ? smaller(low, high) : x> high ? high : x)

#undef KILN_RULE

}  // namespace kiln::reference
