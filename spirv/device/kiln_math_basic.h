// What both types of floats share: rounding, extremes, signs, kinds of numbers; and abs of integers. Included by kiln_math.h alone.
#pragma once

#define __KILN_SAME__(type, name, builtin) \
  __KILN_DEVICE__ type name(type x) { return builtin(x); }
__KILN_SAME__(float, fabsf, __builtin_fabsf)
__KILN_SAME__(float, floorf, __builtin_floorf)
__KILN_SAME__(float, ceilf, __builtin_ceilf)
__KILN_SAME__(float, truncf, __builtin_truncf)
__KILN_SAME__(float, rintf, __builtin_rintf)
__KILN_SAME__(float, nearbyintf, __builtin_rintf)
__KILN_SAME__(float, sqrtf, __builtin_sqrtf)
__KILN_SAME__(double, fabs, __builtin_fabs)
__KILN_SAME__(double, floor, __builtin_floor)
__KILN_SAME__(double, ceil, __builtin_ceil)
__KILN_SAME__(double, trunc, __builtin_trunc)
__KILN_SAME__(double, rint, __builtin_rint)
__KILN_SAME__(double, nearbyint, __builtin_rint)
__KILN_SAME__(double, sqrt, __builtin_sqrt)
__KILN_DEVICE__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__KILN_DEVICE__ double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__KILN_DEVICE__ float fminf(float a, float b) { return __builtin_fminf(a, b); }
__KILN_DEVICE__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__KILN_DEVICE__ double fmin(double a, double b) { return __builtin_fmin(a, b); }
__KILN_DEVICE__ double fmax(double a, double b) { return __builtin_fmax(a, b); }
__KILN_DEVICE__ float copysignf(float a, float b) { return __uint_as_float((__float_as_uint(a) & 0x7fffffffu) | (__float_as_uint(b) & 0x80000000u)); }
__KILN_DEVICE__ double copysign(double a, double b) {
  return __longlong_as_double((__double_as_longlong(a) & INT64_MAX) | (__double_as_longlong(b) & INT64_MIN));
}
__KILN_DEVICE__ int isnan(float x) { return x != x; }
__KILN_DEVICE__ int isnan(double x) { return x != x; }
__KILN_DEVICE__ int isinf(float x) { return (__float_as_uint(x) & 0x7fffffffu) == 0x7f800000u; }
__KILN_DEVICE__ int isinf(double x) { return (__double_as_longlong(x) & INT64_MAX) == 0x7ff0000000000000l; }
__KILN_DEVICE__ int isfinite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }
__KILN_DEVICE__ int isfinite(double x) { return (__double_as_longlong(x) & 0x7ff0000000000000l) != 0x7ff0000000000000l; }
__KILN_DEVICE__ int signbit(float x) { return (int)(__float_as_uint(x) >> 31); }
__KILN_DEVICE__ int signbit(double x) { return __double_as_longlong(x) < 0; }
__KILN_DEVICE__ int abs(int x) { return x < 0 ? -x : x; }
__KILN_DEVICE__ long labs(long x) { return x < 0 ? -x : x; }
__KILN_DEVICE__ long long llabs(long long x) { return x < 0 ? -x : x; }
__KILN_DEVICE__ float rsqrtf(float x) { return 1.0f / sqrtf(x); }
__KILN_DEVICE__ double rsqrt(double x) { return 1.0 / sqrt(x); }
__KILN_DEVICE__ float fdimf(float a, float b) { return a > b ? a - b : (a <= b ? 0.0f : a + b); }
__KILN_DEVICE__ double fdim(double a, double b) { return a > b ? a - b : (a <= b ? 0.0 : a + b); }
__KILN_DEVICE__ float roundf(float x) {  // halves away from zero
  float t = truncf(x);
  return fabsf(x - t) >= 0.5f ? t + copysignf(1.0f, x) : copysignf(t, x);
}
__KILN_DEVICE__ double round(double x) {
  double t = trunc(x);
  return fabs(x - t) >= 0.5 ? t + copysign(1.0, x) : copysign(t, x);
}
// The next number from x toward y.
__KILN_DEVICE__ float nextafterf(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0f) return copysignf(__uint_as_float(1u), y);
  return __uint_as_float(__float_as_uint(x) + ((x < y) == (x > 0.0f) ? 1u : ~0u));
}
__KILN_DEVICE__ double nextafter(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0) return copysign(__longlong_as_double(1), y);
  return __longlong_as_double(__double_as_longlong(x) + ((x < y) == (x > 0.0) ? 1 : -1));
}
__KILN_DEVICE__ long lrintf(float x) { return (long)rintf(x); }
__KILN_DEVICE__ long lrint(double x) { return (long)rint(x); }
__KILN_DEVICE__ long lroundf(float x) { return (long)roundf(x); }
__KILN_DEVICE__ long lround(double x) { return (long)round(x); }
