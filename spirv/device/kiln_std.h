// What kernels use of namespace std, since no standard library is there: min, max, clamp, swap, move, numeric_limits, the type traits of every day,
// and the math functions. Under the standard headers' names (hip_compiler.cpp). Included by kiln_hip.h alone.
#pragma once

namespace std {

using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
using ::size_t; using ::ptrdiff_t; using ::intptr_t; using ::uintptr_t;
typedef decltype(nullptr) nullptr_t;

// ---- type_traits ----

template <class T, T Value>
struct integral_constant {
  static constexpr T value = Value;
  typedef T value_type;
  typedef integral_constant type;
  __host__ __device__ constexpr operator T() const { return Value; }
};
template <bool Value> using bool_constant = integral_constant<bool, Value>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template <class T> using remove_reference_t = __remove_reference_t(T);
template <class T> using remove_cv_t = __remove_cv(T);
template <class T> using remove_const_t = __remove_const(T);
template <class T> using remove_cvref_t = __remove_cvref(T);
template <class T> using remove_pointer_t = __remove_pointer(T);
template <class T> using decay_t = __decay(T);
template <class T> using make_unsigned_t = __make_unsigned(T);
template <class T> using make_signed_t = __make_signed(T);
template <class T> struct remove_reference { typedef remove_reference_t<T> type; };
template <class T> struct remove_cv { typedef remove_cv_t<T> type; };
template <class T> struct remove_const { typedef remove_const_t<T> type; };
template <class T> struct decay { typedef decay_t<T> type; };
template <class T> struct make_unsigned { typedef make_unsigned_t<T> type; };
template <class T> struct make_signed { typedef make_signed_t<T> type; };
template <class A, class B> inline constexpr bool is_same_v = __is_same(A, B);
template <class A, class B> struct is_same : bool_constant<__is_same(A, B)> {};
template <class T> inline constexpr bool is_floating_point_v = __is_floating_point(T);
template <class T> inline constexpr bool is_integral_v = __is_integral(T);
template <class T> inline constexpr bool is_arithmetic_v = __is_arithmetic(T);
template <class T> inline constexpr bool is_signed_v = __is_signed(T);
template <class T> inline constexpr bool is_unsigned_v = __is_unsigned(T);
template <class T> inline constexpr bool is_pointer_v = __is_pointer(T);
template <class T> inline constexpr bool is_enum_v = __is_enum(T);
template <class T> inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class T> struct is_floating_point : bool_constant<__is_floating_point(T)> {};
template <class T> struct is_integral : bool_constant<__is_integral(T)> {};
template <class T> struct is_arithmetic : bool_constant<__is_arithmetic(T)> {};
template <class T> struct is_signed : bool_constant<__is_signed(T)> {};
template <class T> struct is_unsigned : bool_constant<__is_unsigned(T)> {};
template <bool Condition, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool Condition, class T = void> using enable_if_t = typename enable_if<Condition, T>::type;
template <bool Condition, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool Condition, class A, class B> using conditional_t = typename conditional<Condition, A, B>::type;

// ---- utility, algorithm ----

template <class T>
__host__ __device__ constexpr remove_reference_t<T>&& move(T&& x) { return static_cast<remove_reference_t<T>&&>(x); }
template <class T>
__host__ __device__ constexpr T&& forward(remove_reference_t<T>& x) { return static_cast<T&&>(x); }
template <class T>
__host__ __device__ constexpr void swap(T& a, T& b) {
  T kept = std::move(a);
  a = std::move(b);
  b = std::move(kept);
}
template <class T>
__host__ __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T>
__host__ __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T>
__host__ __device__ constexpr const T& clamp(const T& x, const T& low, const T& high) { return x < low ? low : (high < x ? high : x); }

// ---- limits ----

template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = __is_arithmetic(T), is_integer = __is_integral(T), is_signed = __is_signed(T);
  static constexpr int digits = (int)sizeof(T) * 8 - (__is_signed(T) ? 1 : 0);
  static constexpr bool has_infinity = false;
  __host__ __device__ static constexpr T max() { return __is_same(T, bool) ? T(1) : __is_signed(T) ? T((1ull << (sizeof(T) * 8 - 1)) - 1) : T(~0ull); }
  __host__ __device__ static constexpr T min() { return __is_signed(T) ? T(-max() - 1) : T(0); }
  __host__ __device__ static constexpr T lowest() { return min(); }
};
#define __KILN_LIMITS__(type, prefix, infinite, not_a_number)                                          \
  template <>                                                                                          \
  struct numeric_limits<type> {                                                                        \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true, has_infinity = true; \
    static constexpr int digits = prefix##MANT_DIG__;                                                  \
    __host__ __device__ static constexpr type max() { return (type)prefix##MAX__; }                    \
    __host__ __device__ static constexpr type min() { return (type)prefix##MIN__; }                    \
    __host__ __device__ static constexpr type lowest() { return -(type)prefix##MAX__; }                \
    __host__ __device__ static constexpr type epsilon() { return (type)prefix##EPSILON__; }            \
    __host__ __device__ static constexpr type denorm_min() { return (type)prefix##DENORM_MIN__; }      \
    __host__ __device__ static constexpr type infinity() { return (type)infinite; }                    \
    __host__ __device__ static constexpr type quiet_NaN() { return (type)not_a_number; }               \
  };
__KILN_LIMITS__(float, __FLT_, __builtin_inff(), __builtin_nanf(""))
__KILN_LIMITS__(double, __DBL_, __builtin_inf(), __builtin_nan(""))
__KILN_LIMITS__(_Float16, __FLT16_, __builtin_inff(), __builtin_nanf(""))

// ---- cmath ----

using ::fabs; using ::floor; using ::ceil; using ::trunc; using ::rint; using ::nearbyint; using ::round; using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::expm1; using ::log; using ::log2;
using ::log10; using ::log1p; using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::atan2; using ::sinh; using ::cosh; using ::tanh; using ::asinh; using ::acosh;
using ::atanh; using ::erf; using ::erfc; using ::lgamma; using ::tgamma; using ::pow; using ::fmod; using ::remainder; using ::fma; using ::fmin; using ::fmax; using ::fdim; using ::hypot;
using ::copysign; using ::nextafter; using ::ldexp; using ::scalbn; using ::frexp; using ::modf; using ::ilogb; using ::logb; using ::isnan; using ::isinf; using ::isfinite; using ::signbit; using ::abs;
using ::lround; using ::lrint;

}  // namespace std
