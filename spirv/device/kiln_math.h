// Math functions, all of them inline and made of +, -, *, /, sqrt and fma, so that a kernel gives the same bits on every target and no
// target needs a math library. Errors are bounded by test/spirv/writer/math_test.cpp: 3 ulp in float (tan 4), 8 ulp in double (pow, erf 16; erfc, tgamma 64; lgamma 16 from 0 on).
// Sources of the polynomials: Cody and Waite (reductions), Abramowitz and Stegun, FDLIBM, N. Juffa's published minimax fits.
#pragma once

#include "kiln_math_basic.h"
#include "kiln_math_f64.h"
#include "kiln_math_f32.h"  // some go through double
#include "kiln_math_erf.h"
#include "kiln_math_gamma.h"

// ---- C++ overloads, and CUDA's fast forms, which are the exact ones here ----

#define __KILN_OVERLOAD__(name) \
  __KILN_DEVICE__ float name(float x) { return name##f(x); }
__KILN_OVERLOAD__(fabs) __KILN_OVERLOAD__(floor) __KILN_OVERLOAD__(ceil) __KILN_OVERLOAD__(trunc) __KILN_OVERLOAD__(rint)
__KILN_OVERLOAD__(round) __KILN_OVERLOAD__(sqrt) __KILN_OVERLOAD__(rsqrt) __KILN_OVERLOAD__(exp) __KILN_OVERLOAD__(exp2)
__KILN_OVERLOAD__(exp10) __KILN_OVERLOAD__(expm1) __KILN_OVERLOAD__(log) __KILN_OVERLOAD__(log2) __KILN_OVERLOAD__(log10)
__KILN_OVERLOAD__(log1p) __KILN_OVERLOAD__(sin) __KILN_OVERLOAD__(cos) __KILN_OVERLOAD__(tan) __KILN_OVERLOAD__(asin)
__KILN_OVERLOAD__(acos) __KILN_OVERLOAD__(atan) __KILN_OVERLOAD__(sinh) __KILN_OVERLOAD__(cosh) __KILN_OVERLOAD__(tanh)
__KILN_OVERLOAD__(asinh) __KILN_OVERLOAD__(acosh) __KILN_OVERLOAD__(atanh) __KILN_OVERLOAD__(cbrt) __KILN_OVERLOAD__(erf) __KILN_OVERLOAD__(erfc)
__KILN_OVERLOAD__(lgamma) __KILN_OVERLOAD__(tgamma) __KILN_OVERLOAD__(nearbyint) __KILN_OVERLOAD__(logb)
__KILN_DEVICE__ float abs(float x) { return fabsf(x); }
__KILN_DEVICE__ double abs(double x) { return fabs(x); }
__KILN_DEVICE__ long abs(long x) { return labs(x); }
__KILN_DEVICE__ long long abs(long long x) { return llabs(x); }
__KILN_DEVICE__ int ilogb(float x) { return ilogbf(x); }
__KILN_DEVICE__ long lround(float x) { return lroundf(x); }
__KILN_DEVICE__ long lrint(float x) { return lrintf(x); }
__KILN_DEVICE__ float fmin(float a, float b) { return fminf(a, b); }
__KILN_DEVICE__ float fmax(float a, float b) { return fmaxf(a, b); }
__KILN_DEVICE__ float fdim(float a, float b) { return fdimf(a, b); }
__KILN_DEVICE__ float hypot(float a, float b) { return hypotf(a, b); }
__KILN_DEVICE__ float copysign(float a, float b) { return copysignf(a, b); }
__KILN_DEVICE__ float remainder(float a, float b) { return remainderf(a, b); }
__KILN_DEVICE__ float nextafter(float a, float b) { return nextafterf(a, b); }
__KILN_DEVICE__ float ldexp(float x, int n) { return ldexpf(x, n); }
__KILN_DEVICE__ float scalbn(float x, int n) { return scalbnf(x, n); }
__KILN_DEVICE__ float frexp(float x, int* exponent) { return frexpf(x, exponent); }
__KILN_DEVICE__ float modf(float x, float* whole) { return modff(x, whole); }
__KILN_DEVICE__ void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
__KILN_DEVICE__ float pow(float x, float y) { return powf(x, y); }
__KILN_DEVICE__ float fmod(float x, float y) { return fmodf(x, y); }
__KILN_DEVICE__ float atan2(float y, float x) { return atan2f(y, x); }
__KILN_DEVICE__ float fma(float a, float b, float c) { return fmaf(a, b, c); }
#define __KILN_EXTREMES__(type)                                            \
  __KILN_DEVICE__ type min(type a, type b) { return b < a ? b : a; }       \
  __KILN_DEVICE__ type max(type a, type b) { return a < b ? b : a; }
__KILN_EXTREMES__(int) __KILN_EXTREMES__(unsigned) __KILN_EXTREMES__(long) __KILN_EXTREMES__(unsigned long) __KILN_EXTREMES__(long long) __KILN_EXTREMES__(unsigned long long)
__KILN_DEVICE__ float min(float a, float b) { return fminf(a, b); }
__KILN_DEVICE__ float max(float a, float b) { return fmaxf(a, b); }
__KILN_DEVICE__ double min(double a, double b) { return fmin(a, b); }
__KILN_DEVICE__ double max(double a, double b) { return fmax(a, b); }
__KILN_DEVICE__ float __expf(float x) { return expf(x); }
__KILN_DEVICE__ float __logf(float x) { return logf(x); }
__KILN_DEVICE__ float __log2f(float x) { return log2f(x); }
__KILN_DEVICE__ float __powf(float x, float y) { return powf(x, y); }
__KILN_DEVICE__ float __sinf(float x) { return sinf(x); }
__KILN_DEVICE__ float __cosf(float x) { return cosf(x); }
__KILN_DEVICE__ float __tanf(float x) { return tanf(x); }
__KILN_DEVICE__ float __exp10f(float x) { return exp10f(x); }
__KILN_DEVICE__ float __log10f(float x) { return log10f(x); }
__KILN_DEVICE__ void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
__KILN_DEVICE__ float __frsqrt_rn(float x) { return rsqrtf(x); }
__KILN_DEVICE__ float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
__KILN_DEVICE__ double rcbrt(double x) { return 1.0 / cbrt(x); }
__KILN_DEVICE__ float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
__KILN_DEVICE__ float norm3df(float x, float y, float z) { return (float)sqrt((double)x * (double)x + (double)y * (double)y + (double)z * (double)z); }
__KILN_DEVICE__ float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
__KILN_DEVICE__ double normcdf(double x) { return 0.5 * erfc(x * -0.70710678118654752); }
__KILN_DEVICE__ float normcdff(float x) { return (float)normcdf((double)x); }
__KILN_DEVICE__ float fdividef(float a, float b) { return a / b; }
__KILN_DEVICE__ float __fdividef(float a, float b) { return a / b; }
// Named operations are never contracted.
__KILN_DEVICE__ float __fadd_rn(float a, float b) { return a + b; }
__KILN_DEVICE__ float __fsub_rn(float a, float b) { return a - b; }
__KILN_DEVICE__ float __fmul_rn(float a, float b) { return a * b; }
__KILN_DEVICE__ float __fdiv_rn(float a, float b) { return a / b; }
__KILN_DEVICE__ double __dadd_rn(double a, double b) { return a + b; }
__KILN_DEVICE__ double __dsub_rn(double a, double b) { return a - b; }
__KILN_DEVICE__ double __dmul_rn(double a, double b) { return a * b; }
__KILN_DEVICE__ double __ddiv_rn(double a, double b) { return a / b; }
__KILN_DEVICE__ double __dsqrt_rn(double x) { return sqrt(x); }
__KILN_DEVICE__ double __drcp_rn(double x) { return 1.0 / x; }
__KILN_DEVICE__ double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
__KILN_DEVICE__ float __frcp_rn(float x) { return 1.0f / x; }
__KILN_DEVICE__ float __fsqrt_rn(float x) { return sqrtf(x); }
__KILN_DEVICE__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__KILN_DEVICE__ float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
__KILN_DEVICE__ int __float2int_rn(float x) { return (int)rintf(x); }
__KILN_DEVICE__ int __float2int_rz(float x) { return (int)x; }
__KILN_DEVICE__ float __int2float_rn(int x) { return (float)x; }
#define __KILN_TO_INTEGER__(name, from, to, suffix)                          \
  __KILN_DEVICE__ to name##_rz(from x) { return (to)x; }                     \
  __KILN_DEVICE__ to name##_rd(from x) { return (to)floor##suffix(x); }      \
  __KILN_DEVICE__ to name##_ru(from x) { return (to)ceil##suffix(x); }
__KILN_DEVICE__ int __float2int_rd(float x) { return (int)floorf(x); }
__KILN_DEVICE__ int __float2int_ru(float x) { return (int)ceilf(x); }
__KILN_TO_INTEGER__(__float2uint, float, unsigned, f) __KILN_TO_INTEGER__(__float2ll, float, long long, f) __KILN_TO_INTEGER__(__float2ull, float, unsigned long long, f)
__KILN_TO_INTEGER__(__double2int, double, int, ) __KILN_TO_INTEGER__(__double2uint, double, unsigned, ) __KILN_TO_INTEGER__(__double2ll, double, long long, )
__KILN_DEVICE__ unsigned __float2uint_rn(float x) { return (unsigned)rintf(x); }
__KILN_DEVICE__ long long __float2ll_rn(float x) { return (long long)rintf(x); }
__KILN_DEVICE__ int __double2int_rn(double x) { return (int)rint(x); }
__KILN_DEVICE__ long long __double2ll_rn(double x) { return (long long)rint(x); }
__KILN_DEVICE__ float __double2float_rn(double x) { return (float)x; }
__KILN_DEVICE__ float __uint2float_rn(unsigned x) { return (float)x; }
__KILN_DEVICE__ float __ll2float_rn(long long x) { return (float)x; }
__KILN_DEVICE__ double __int2double_rn(int x) { return x; }
__KILN_DEVICE__ double __uint2double_rn(unsigned x) { return x; }
__KILN_DEVICE__ double __ll2double_rn(long long x) { return (double)x; }
