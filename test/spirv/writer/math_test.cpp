// The device header's math functions, compiled for this machine: what they compute is +, -, *, /, sqrt and fma, the
// same on every target.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#undef isnan
#undef isinf
#undef isfinite
#undef signbit

namespace device {
#define __KILN_DEVICE__ [[maybe_unused]] static
__KILN_DEVICE__ int __float_as_int(float x) { return std::bit_cast<int>(x); }
__KILN_DEVICE__ unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
__KILN_DEVICE__ float __int_as_float(int x) { return std::bit_cast<float>(x); }
__KILN_DEVICE__ float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
__KILN_DEVICE__ long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
__KILN_DEVICE__ double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
#include "spirv/device/kiln_math.h"
}  // namespace device

namespace {

// In units of the last place of what should have come out.
template <class T>
double ulps(T got, long double expected) {
  if (std::isnan(static_cast<double>(expected))) return std::isnan(got) ? 0 : 1e30;
  T rounded = static_cast<T>(expected);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e30;
  long double unit =
      std::max<long double>(std::abs(static_cast<long double>(std::nextafter(rounded, T(INFINITY))) - rounded),
                            std::numeric_limits<T>::denorm_min());
  return static_cast<double>(std::abs(static_cast<long double>(got) - expected) / unit);
}

template <class T>
struct unary_case {
  const char* name;
  T (*function)(T);
  long double (*expected)(long double);
  double low, high, limit;
};

template <class T>
void check(std::initializer_list<unary_case<T>> cases) {
  for (const auto& c : cases) {
    std::mt19937_64 random(7);
    double worst = 0;
    T worst_at = 0;
    auto look = [&](T x) {
      double error = ulps<T>(c.function(x), c.expected(static_cast<long double>(x)));
      if (error > worst) worst = error, worst_at = x;
    };
    std::uniform_real_distribution<double> uniform(c.low, c.high);
    std::uniform_real_distribution<double> magnitude(-20, 0);
    for (int i = 0; i < 40000; ++i) {
      look(static_cast<T>(uniform(random)));
      look(static_cast<T>(uniform(random) * std::exp2(magnitude(random))));
    }
    EXPECT_LE(worst, c.limit) << c.name << " at " << worst_at << " gives " << c.function(worst_at);
    ::testing::Test::RecordProperty(c.name, std::to_string(worst));
    for (double special : {0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      auto x = static_cast<T>(special);
      T got = c.function(x);
      long double expected = c.expected(static_cast<long double>(x));
      EXPECT_LE(ulps<T>(got, expected), c.limit) << c.name << " of " << special << " gives " << got;
    }
  }
}

using ld = long double;

// Reduced before π is multiplied, which has no exact multiple.
ld sine_of_pi_times(ld x) {
  ld halves = std::rint(2 * x), rest = (x - halves / 2) * std::numbers::pi_v<ld>;
  if (!std::isfinite(x)) return std::nanl("");
  switch (static_cast<int>(std::fmod(halves, 4.0L)) & 3) {
    case 0: return std::sin(rest);
    case 1: return std::cos(rest);
    case 2: return -std::sin(rest);
    default: return -std::cos(rest);
  }
}

TEST(device_math, float_functions) {
  check<float>({
      {"expf", device::expf, std::exp, -100, 88.5, 2},
      {"exp2f", device::exp2f, std::exp2, -140, 127.9, 2},
      {"exp10f", device::exp10f, [](ld x) { return std::pow(10.0L, x); }, -40, 38.4, 2},
      {"expm1f", device::expm1f, std::expm1, -20, 88, 3},
      {"logf", device::logf, std::log, 0, 1e30, 2},
      {"log2f", device::log2f, std::log2, 0, 1e30, 2},
      {"log10f", device::log10f, std::log10, 0, 1e30, 2},
      {"log1pf", device::log1pf, std::log1p, -0.99, 1e6, 3},
      {"sinf", device::sinf, std::sin, -40000, 40000, 2},
      {"cosf", device::cosf, std::cos, -40000, 40000, 2},
      {"tanf", device::tanf, std::tan, -1000, 1000, 4},
      {"sinf, large", device::sinf, std::sin, -1e9, 1e9, 2},
      {"cosf, large", device::cosf, std::cos, -1e9, 1e9, 2},
      {"asinf", device::asinf, std::asin, -1, 1, 1},
      {"acosf", device::acosf, std::acos, -1, 1, 1},
      {"atanf", device::atanf, std::atan, -1e4, 1e4, 1},
      {"sinhf", device::sinhf, std::sinh, -88, 88, 1},
      {"coshf", device::coshf, std::cosh, -88, 88, 1},
      {"tanhf", device::tanhf, std::tanh, -12, 12, 3},
      {"asinhf", device::asinhf, std::asinh, -1e6, 1e6, 1},
      {"acoshf", device::acoshf, std::acosh, 1, 1e6, 1},
      {"atanhf", device::atanhf, std::atanh, -0.999, 0.999, 1},
      {"cbrtf", device::cbrtf, std::cbrt, -1e20, 1e20, 1},
      {"erff", device::erff, std::erf, -5, 5, 3},
      {"erfcf", device::erfcf, std::erfc, -5, 9, 2},
      {"roundf", device::roundf, std::round, -1e7, 1e7, 0},
      {"rsqrtf", device::rsqrtf, [](ld x) { return 1 / std::sqrt(x); }, 0, 1e30, 2},
  });
}

TEST(device_math, double_functions) {
  check<double>({
      {"exp", device::exp, std::exp, -700, 709, 4},
      {"exp2", device::exp2, std::exp2, -1000, 1023.5, 4},
      {"exp10", device::exp10, [](ld x) { return std::pow(10.0L, x); }, -300, 308, 8},
      {"expm1", device::expm1, std::expm1, -30, 700, 8},
      {"log", device::log, std::log, 0, 1e300, 4},
      {"log2", device::log2, std::log2, 0, 1e300, 4},
      {"log10", device::log10, std::log10, 0, 1e300, 4},
      {"log1p", device::log1p, std::log1p, -0.99, 1e6, 8},
      {"sin", device::sin, std::sin, -1e5, 1e5, 4},
      {"cos", device::cos, std::cos, -1e5, 1e5, 4},
      {"tan", device::tan, std::tan, -1000, 1000, 8},
      {"asin", device::asin, std::asin, -1, 1, 4},
      {"acos", device::acos, std::acos, -1, 1, 4},
      {"atan", device::atan, std::atan, -1e4, 1e4, 4},
      {"sinh", device::sinh, std::sinh, -700, 700, 8},
      {"cosh", device::cosh, std::cosh, -700, 700, 8},
      {"tanh", device::tanh, std::tanh, -20, 20, 8},
      {"asinh", device::asinh, std::asinh, -1e6, 1e6, 8},
      {"acosh", device::acosh, std::acosh, 1, 1e6, 8},
      {"atanh", device::atanh, std::atanh, -0.999, 0.999, 8},
      {"cbrt", device::cbrt, std::cbrt, -1e200, 1e200, 4},
      {"erf", device::erf, std::erf, -6, 6, 16},
      {"erfc", device::erfc, std::erfc, -6, 25, 64},
      {"round", device::round, std::round, -1e12, 1e12, 0},
      {"logb", device::logb, std::logb, -1e300, 1e300, 0},
      {"tgamma", device::tgamma, std::tgamma, 0.1, 171.5, 64},
      {"tgamma, negative", device::tgamma, std::tgamma, -5, 5, 64},
      {"lgamma", device::lgamma, std::lgamma, 0, 1e6, 16},
      {"sinpi", device::sinpi, sine_of_pi_times, -1000, 1000, 4},
  });
}

TEST(device_math, gamma_where_it_is_special) {
  for (int n = 1; n < 30; ++n)
    EXPECT_LE(ulps<double>(device::tgamma(static_cast<double>(n)), std::tgamma(static_cast<ld>(n))), 2) << n;
  for (double x : {-0.5, -1.5, -20.25, -100.75, 1e-300, -1e-10})
    EXPECT_NEAR(device::lgamma(x), std::lgamma(x), 1e-13 * (1 + std::abs(std::lgamma(x)))) << x;
  EXPECT_EQ(device::lgamma(1.0), 0);
  EXPECT_EQ(device::lgamma(2.0), 0);
  EXPECT_EQ(device::lgamma(-3.0), HUGE_VAL);
  EXPECT_TRUE(std::isnan(device::tgamma(-3.0)));
  EXPECT_EQ(device::tgamma(172.0), HUGE_VAL);
  EXPECT_EQ(device::cospi(0.5), 0);
  EXPECT_EQ(device::cospi(1e9), 1);
  EXPECT_FLOAT_EQ(device::tgammaf(4.5f), std::tgamma(4.5f));
}

TEST(device_math, two_arguments) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> base(0, 50), any(-20, 20);
  for (int i = 0; i < 30000; ++i) {
    double x = base(random), y = any(random), z = any(random) * 1e3;
    EXPECT_LE(ulps<double>(device::pow(x, y), std::pow(static_cast<ld>(x), static_cast<ld>(y))), 16) << x << "^" << y;
    auto fx = static_cast<float>(x), fy = static_cast<float>(y), fz = static_cast<float>(z);
    EXPECT_LE(ulps<float>(device::powf(fx, fy), std::pow(static_cast<ld>(fx), static_cast<ld>(fy))), 2)
        << fx << "^" << fy;
    EXPECT_LE(ulps<double>(device::atan2(y, z), std::atan2(static_cast<ld>(y), static_cast<ld>(z))), 4);
    EXPECT_EQ(device::fmod(z, y), std::fmod(z, y)) << z << " " << y;
    EXPECT_EQ(device::remainder(z, y), std::remainder(z, y)) << z << " " << y;
    EXPECT_EQ(device::fmodf(fz, fy), std::fmod(fz, fy));
    EXPECT_LE(ulps<double>(device::hypot(y, z), std::hypot(static_cast<ld>(y), static_cast<ld>(z))), 4);
    EXPECT_EQ(device::nextafter(z, y), std::nextafter(z, y)) << z << " " << y;
    EXPECT_EQ(device::nextafterf(fz, fy), std::nextafter(fz, fy)) << fz << " " << fy;
    EXPECT_EQ(device::ilogb(z), std::ilogb(z));
    int e1, e2;
    EXPECT_EQ(device::frexp(z, &e1), std::frexp(z, &e2));
    EXPECT_EQ(e1, e2);
    EXPECT_EQ(device::ldexpf(fz, e1), std::ldexp(fz, e1));
  }
  for (double x : {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, HUGE_VAL, -HUGE_VAL, 0.5, -0.5})
    for (double y : {0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, HUGE_VAL, -HUGE_VAL}) {
      double got = device::pow(x, y), expected = std::pow(x, y);
      EXPECT_TRUE(got == expected || std::abs(got / expected - 1) < 1e-15 || (std::isnan(got) && std::isnan(expected)))
          << x << "^" << y << " gives " << got;
      EXPECT_EQ(std::signbit(got),
                std::signbit(expected) && !std::isnan(got) ? true : std::signbit(got) && std::isnan(got))
          << x << "^" << y;
      double angle = device::atan2(x, y);
      EXPECT_LE(ulps<double>(angle, std::atan2(static_cast<ld>(x), static_cast<ld>(y))), 4) << x << ", " << y;
    }
}

}  // namespace
