// Math functions, all of them inline and made of +, -, *, /, sqrt and fma, so that a kernel gives the same bits on every target and no
// target needs a math library. Errors are bounded by test/spirv/writer/math_test.cpp: 3 ulp in float (tan 4), 8 ulp in double (pow, erf 16; erfc 64).
// Sources of the polynomials: Cody and Waite (reductions), Abramowitz and Stegun, FDLIBM, N. Juffa's published minimax fits.
#pragma once

#include "kiln_math_basic.h"
#include "kiln_math_f64.h"
#include "kiln_math_f32.h"  // some go through double
#include "kiln_math_erf.h"

// ---- C++ overloads, and CUDA's fast forms, which are the exact ones here ----

#define __KILN_OVERLOAD__(name) \
  __KILN_DEVICE__ float name(float x) { return name##f(x); }
__KILN_OVERLOAD__(fabs) __KILN_OVERLOAD__(floor) __KILN_OVERLOAD__(ceil) __KILN_OVERLOAD__(trunc) __KILN_OVERLOAD__(rint)
__KILN_OVERLOAD__(round) __KILN_OVERLOAD__(sqrt) __KILN_OVERLOAD__(rsqrt) __KILN_OVERLOAD__(exp) __KILN_OVERLOAD__(exp2)
__KILN_OVERLOAD__(exp10) __KILN_OVERLOAD__(expm1) __KILN_OVERLOAD__(log) __KILN_OVERLOAD__(log2) __KILN_OVERLOAD__(log10)
__KILN_OVERLOAD__(log1p) __KILN_OVERLOAD__(sin) __KILN_OVERLOAD__(cos) __KILN_OVERLOAD__(tan) __KILN_OVERLOAD__(asin)
__KILN_OVERLOAD__(acos) __KILN_OVERLOAD__(atan) __KILN_OVERLOAD__(sinh) __KILN_OVERLOAD__(cosh) __KILN_OVERLOAD__(tanh)
__KILN_OVERLOAD__(asinh) __KILN_OVERLOAD__(acosh) __KILN_OVERLOAD__(atanh) __KILN_OVERLOAD__(cbrt) __KILN_OVERLOAD__(erf) __KILN_OVERLOAD__(erfc)
__KILN_DEVICE__ float abs(float x) { return fabsf(x); }
__KILN_DEVICE__ double abs(double x) { return fabs(x); }
__KILN_DEVICE__ long abs(long x) { return labs(x); }
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
__KILN_DEVICE__ float __fdividef(float a, float b) { return a / b; }
__KILN_DEVICE__ float __frcp_rn(float x) { return 1.0f / x; }
__KILN_DEVICE__ float __fsqrt_rn(float x) { return sqrtf(x); }
__KILN_DEVICE__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__KILN_DEVICE__ float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
__KILN_DEVICE__ int __float2int_rn(float x) { return (int)rintf(x); }
__KILN_DEVICE__ int __float2int_rz(float x) { return (int)x; }
__KILN_DEVICE__ float __int2float_rn(int x) { return (float)x; }
