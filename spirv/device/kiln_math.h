// Math functions, all of them inline and made of +, -, *, /, sqrt and fma, so that a kernel gives the same bits on every target and no
// target needs a math library. Errors are bounded by test/spirv/writer/math_test.cpp: 3 ulp in float (tan 4), 8 ulp in double (pow, erf 16; erfc 64).
// Sources of the polynomials: Cody and Waite (reductions), Abramowitz and Stegun, FDLIBM, N. Juffa's published minimax fits.
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
__KILN_DEVICE__ long lrintf(float x) { return (long)rintf(x); }
__KILN_DEVICE__ long lrint(double x) { return (long)rint(x); }
__KILN_DEVICE__ long lroundf(float x) { return (long)roundf(x); }
__KILN_DEVICE__ long lround(double x) { return (long)round(x); }

// ---- Powers of two and scaling ----

// x · 2^n, n as it comes: in steps that are powers of two themselves.
__KILN_DEVICE__ float ldexpf(float x, int n) {
  n = n < -300 ? -300 : (n > 300 ? 300 : n);
  int a = n / 3, b = (n - a) / 2, c = n - a - b;
  return x * __int_as_float((a + 127) << 23) * __int_as_float((b + 127) << 23) * __int_as_float((c + 127) << 23);
}
__KILN_DEVICE__ double ldexp(double x, int n) {
  n = n < -2200 ? -2200 : (n > 2200 ? 2200 : n);
  int a = n / 3, b = (n - a) / 2, c = n - a - b;
  return x * __longlong_as_double((long long)(a + 1023) << 52) * __longlong_as_double((long long)(b + 1023) << 52) * __longlong_as_double((long long)(c + 1023) << 52);
}
__KILN_DEVICE__ float scalbnf(float x, int n) { return ldexpf(x, n); }
__KILN_DEVICE__ double scalbn(double x, int n) { return ldexp(x, n); }
__KILN_DEVICE__ float frexpf(float x, int* exponent) {
  *exponent = 0;
  if (x == 0.0f || !isfinite(x)) return x;
  int lift = fabsf(x) < FLT_MIN ? 24 : 0;
  unsigned bits = __float_as_uint(lift ? x * 16777216.0f : x);
  *exponent = (int)((bits >> 23) & 255u) - 126 - lift;
  return __uint_as_float((bits & 0x807fffffu) | 0x3f000000u);
}
__KILN_DEVICE__ double frexp(double x, int* exponent) {
  *exponent = 0;
  if (x == 0.0 || !isfinite(x)) return x;
  int lift = fabs(x) < DBL_MIN ? 54 : 0;
  long long bits = __double_as_longlong(lift ? x * 18014398509481984.0 : x);
  *exponent = (int)((bits >> 52) & 2047) - 1022 - lift;
  return __longlong_as_double((bits & (long long)0x800fffffffffffffull) | 0x3fe0000000000000ll);
}
__KILN_DEVICE__ float modff(float x, float* whole) {
  *whole = truncf(x);
  return isinf(x) ? copysignf(0.0f, x) : copysignf(x - *whole, x);
}
__KILN_DEVICE__ double modf(double x, double* whole) {
  *whole = trunc(x);
  return isinf(x) ? copysign(0.0, x) : copysign(x - *whole, x);
}

// ---- Exponentials and logarithms ----

// e^(f + low) · 2^n for |f| ≤ 0.35.
__KILN_DEVICE__ float __kiln_exp_reduced(float f, float n) {
  float r = 1.37805939e-3f;
  r = fmaf(r, f, 8.37312452e-3f);
  r = fmaf(r, f, 4.16695364e-2f);
  r = fmaf(r, f, 1.66664720e-1f);
  r = fmaf(r, f, 4.99999851e-1f);
  r = fmaf(r, f, 1.0f);
  r = fmaf(r, f, 1.0f);
  int i = (int)n, half = i >> 1;
  return r * __int_as_float((half + 127) << 23) * __int_as_float((i - half + 127) << 23);
}
__KILN_DEVICE__ float expf(float x) {
  float a = fminf(fmaxf(x, -106.0f), 90.0f);
  float n = rintf(a * 1.44269502f);
  float f = fmaf(n, -1.42860677e-6f, fmaf(n, -6.93145752e-1f, a));
  return x != x ? x : __kiln_exp_reduced(f, n);
}
__KILN_DEVICE__ float exp2f(float x) {
  float a = fminf(fmaxf(x, -152.0f), 129.0f);
  float n = rintf(a);
  return x != x ? x : __kiln_exp_reduced((a - n) * 0.693147181f, n);
}
__KILN_DEVICE__ float exp10f(float x) {
  float a = fminf(fmaxf(x, -46.0f), 39.0f);
  float n = rintf(a * 3.32192802f);
  float f = fmaf(n, -7.90340328e-7f, fmaf(n, -3.01029205e-1f, a));  // log10(2) in two parts
  return x != x ? x : __kiln_exp_reduced(fmaf(f, 2.30258512f, f * -3.19255174e-8f), n);
}
__KILN_DEVICE__ float __kiln_log_reduced(float m) {  // log(1 + m), m in [-1/3, 1/3]
  float s = m * m;
  float r = -0.130187988f, t = 0.140869141f;
  r = fmaf(r, s, -0.121483512f);
  t = fmaf(t, s, 0.139814854f);
  r = fmaf(r, s, -0.166846126f);
  t = fmaf(t, s, 0.200120345f);
  r = fmaf(r, s, -0.249996200f);
  r = fmaf(t, m, r);
  r = fmaf(r, m, 0.333331972f);
  r = fmaf(r, m, -0.5f);
  return fmaf(r, s, m);
}
__KILN_DEVICE__ float logf(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -INFINITY : NAN;
  if (isinf(x)) return x;
  float lift = x < FLT_MIN ? -23.0f : 0.0f;
  int bits = __float_as_int(lift != 0.0f ? x * 8388608.0f : x);
  int e = (bits - 0x3f2aaaab) & (int)0xff800000u;
  float n = fmaf((float)e, 1.19209290e-7f, lift);
  return fmaf(n, 0.693147182f, fmaf(n, -1.90465421e-9f, __kiln_log_reduced(__int_as_float(bits - e) - 1.0f)));
}
__KILN_DEVICE__ float log1pf(float x) {
  if (fabsf(x) < 0.3f) return x == 0.0f ? x : __kiln_log_reduced(x);
  float u = 1.0f + x;
  return isinf(x) && x > 0.0f ? x : logf(u) + (u > 0.0f ? (x - (u - 1.0f)) / u : 0.0f);
}
__KILN_DEVICE__ float expm1f(float x) {
  if (fabsf(x) >= 0.35f) return expf(x) - 1.0f;
  float r = 1.98412698e-4f;
  r = fmaf(r, x, 1.38888889e-3f);
  r = fmaf(r, x, 8.33333333e-3f);
  r = fmaf(r, x, 4.16666667e-2f);
  r = fmaf(r, x, 1.66666667e-1f);
  r = fmaf(r, x, 0.5f);
  return fmaf(r, x * x, x);
}

__KILN_DEVICE__ double exp(double x) {
  double a = fmin(fmax(x, -750.0), 712.0);
  double n = rint(a * 1.4426950408889634);
  double f = fma(n, -1.9082149292705877e-10, fma(n, -6.9314718036912382e-1, a));
  double r = 1.6059043836821613e-10;  // 1/13!, 1/12!, ... 1
  r = fma(r, f, 2.0876756987868099e-9);
  r = fma(r, f, 2.5052108385441719e-8);
  r = fma(r, f, 2.7557319223985891e-7);
  r = fma(r, f, 2.7557319223985893e-6);
  r = fma(r, f, 2.4801587301587302e-5);
  r = fma(r, f, 1.9841269841269841e-4);
  r = fma(r, f, 1.3888888888888889e-3);
  r = fma(r, f, 8.3333333333333333e-3);
  r = fma(r, f, 4.1666666666666667e-2);
  r = fma(r, f, 1.6666666666666667e-1);
  r = fma(r, f, 0.5);
  r = fma(r, f, 1.0);
  r = fma(r, f, 1.0);
  return x != x ? x : ldexp(r, (int)n);
}
// log(x) = n·log(2) + log(m), m in [√½, √2], by the series of atanh: high and low part.
__KILN_DEVICE__ double __kiln_log(double x, double* low) {
  int n;
  double m = frexp(x, &n);
  if (m < 0.70710678118654752) m *= 2.0, --n;
  double f = m - 1.0, q = f / (m + 1.0), s = q * q;
  double r = 1.0 / 21.0;
  r = fma(r, s, 1.0 / 19.0);
  r = fma(r, s, 1.0 / 17.0);
  r = fma(r, s, 1.0 / 15.0);
  r = fma(r, s, 1.0 / 13.0);
  r = fma(r, s, 1.0 / 11.0);
  r = fma(r, s, 1.0 / 9.0);
  r = fma(r, s, 1.0 / 7.0);
  r = fma(r, s, 1.0 / 5.0);
  r = fma(r, s, 1.0 / 3.0);
  r *= 2.0 * s * q;
  double error = fma(-q, m + 1.0, f) / (m + 1.0);  // of the division
  double sum_error = (m - ((m + 1.0) - 1.0));      // of m + 1
  error = fma(-q, sum_error / (m + 1.0), error);
  double high = 2.0 * q, of_m = high + r, rest = (high - of_m) + r + 2.0 * error;
  double base = (double)n * 0.69314718036912382, sum = base + of_m;
  rest += (n == 0 ? 0.0 : (base - sum) + of_m) + (double)n * 1.9082149292705877e-10;
  double total = sum + rest;
  *low = (sum - total) + rest;
  return total;
}
__KILN_DEVICE__ double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -(double)INFINITY : (double)NAN;
  if (isinf(x)) return x;
  double low, high = __kiln_log(x, &low);
  return high + low;
}
__KILN_DEVICE__ double exp2(double x) {
  double n = rint(fmin(fmax(x, -1080.0), 1030.0));
  double f = fmin(fmax(x, -1080.0), 1030.0) - n;
  return x != x ? x : ldexp(exp(f * 0.69314718055994531), (int)n);
}
__KILN_DEVICE__ double exp10(double x) {
  double n = rint(fmin(fmax(x, -330.0), 310.0) * 3.3219280948873623);
  double f = fma(n, 2.8037281277851703e-18, fma(n, -3.0102999566398120e-1, fmin(fmax(x, -330.0), 310.0)));
  return x != x ? x : ldexp(exp(f * 2.3025850929940457), (int)n);
}
__KILN_DEVICE__ double log2(double x) {
  if (!(x > 0.0) || isinf(x)) return log(x);
  int n;
  double m = frexp(x, &n);
  if (m < 0.70710678118654752) m *= 2.0, --n;
  double low, high = __kiln_log(m, &low);
  return (double)n + fma(high, 1.4426950408889634, fma(high, 2.0355273740931033e-17, low * 1.4426950408889634));
}
__KILN_DEVICE__ double log10(double x) {
  if (!(x > 0.0) || isinf(x)) return log(x);
  double low, high = __kiln_log(x, &low);
  return fma(high, 0.43429448190325183, fma(high, 1.0983196502167651e-17, low * 0.43429448190325183));
}
__KILN_DEVICE__ double log1p(double x) {
  double u = 1.0 + x;
  if (u == 1.0) return x;
  return isinf(x) && x > 0.0 ? x : log(u) + (u > 0.0 ? (x - (u - 1.0)) / u : 0.0);
}
__KILN_DEVICE__ double expm1(double x) {
  if (fabs(x) >= 0.5) return exp(x) - 1.0;
  double r = 1.0, term = 18.0;
  for (; term >= 2.0; term -= 1.0) r = fma(r, x / term, 1.0);
  return r * x;
}
__KILN_DEVICE__ float log2f(float x) { return (float)log2((double)x); }
__KILN_DEVICE__ float log10f(float x) { return (float)log10((double)x); }

// |x|^y = e^(y·log|x|) with the logarithm in two parts; the cases of zero, infinity, NaN and negative bases as in C.
__KILN_DEVICE__ double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return x + y;
  double ax = fabs(x);
  bool whole = trunc(y) == y, odd = whole && fabs(y) < 9007199254740992.0 && ((long)y & 1);
  double result;
  if (isinf(y)) return ax == 1.0 ? 1.0 : ((ax > 1.0) == (y > 0.0) ? (double)INFINITY : 0.0);
  if (ax == 0.0 || isinf(ax)) result = (ax == 0.0) == (y > 0.0) ? 0.0 : (double)INFINITY;
  else if (x < 0.0 && !whole) return (double)NAN;
  else {
    double low, high = __kiln_log(ax, &low);
    double product = y * high, rest = fma(y, high, -product) + y * low;
    double limited = fmin(fmax(product, -800.0), 800.0);
    result = exp(limited);
    if (limited == product && isfinite(result)) result = fma(result, rest, result);
  }
  return x < 0.0 && odd ? -result : (odd && signbit(x) ? -result : result);
}
__KILN_DEVICE__ float powf(float x, float y) { return (float)pow((double)x, (double)y); }

// ---- Trigonometry ----

// x − q·π/2 in [−π/4, π/4], and q modulo 4. Large arguments multiply by 2/π in integers (Payne and Hanek).
__KILN_DEVICE__ float __kiln_quadrant(float x, int* quadrant) {
  if (fabsf(x) < 48000.0f) {
    float n = rintf(x * 0.636619747f);
    *quadrant = (int)n;
    return fmaf(n, -0x1.846988p-48f, fmaf(n, -0x1.5110b4p-22f, fmaf(n, -0x1.921fb0p+00f, x)));
  }
  const unsigned two_over_pi[7] = {0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u};
  unsigned bits = __float_as_uint(x), mantissa = ((bits & 0x7fffffu) << 8) | 0x80000000u;
  unsigned e = ((bits >> 23) & 255u) - 126u, i = e >> 5, shift = e & 31u;
  unsigned word[4] = {0u, 0u, 0u, 0u};
  for (unsigned k = 0; k < 6; ++k)
    if (k >= i && k < i + 4) word[k - i] = two_over_pi[k];
  unsigned long hi = ((unsigned long)word[0] << 32 | word[1]) << shift >> 32, mid = ((unsigned long)word[1] << 32 | word[2]) << shift >> 32,
                lo = ((unsigned long)word[2] << 32 | word[3]) << shift >> 32;
  unsigned long p = mantissa * (lo & 0xffffffffu);
  p = mantissa * (mid & 0xffffffffu) + (p >> 32);
  p = ((mantissa * (hi & 0xffffffffu)) << 32) + p;
  int q = (int)(p >> 62);
  p &= 0x3fffffffffffffffu;
  if (p & 0x2000000000000000u) p -= 0x4000000000000000u, ++q;
  float r = (float)((double)(long)p * 3.4061215800304e-19);  // π/2 · 2^-62
  *quadrant = bits >> 31 ? -q : q;
  return bits >> 31 ? -r : r;
}
__KILN_DEVICE__ float __kiln_sin_reduced(float x) {
  float s = x * x, r = fmaf(fmaf(fmaf(2.86567956e-6f, s, -1.98559923e-4f), s, 8.33338592e-3f), s, -1.66666672e-1f);
  return fmaf(r, s * x, x);
}
__KILN_DEVICE__ float __kiln_cos_reduced(float x) {
  float s = x * x;
  return fmaf(fmaf(fmaf(fmaf(2.44677067e-5f, s, -1.38877297e-3f), s, 4.16666567e-2f), s, -0.5f), s, 1.0f);
}
__KILN_DEVICE__ void sincosf(float x, float* sine, float* cosine) {
  if (!isfinite(x)) {
    *sine = *cosine = NAN;
    return;
  }
  int q;
  float r = __kiln_quadrant(x, &q), s = __kiln_sin_reduced(r), c = __kiln_cos_reduced(r);
  float first = q & 1 ? c : s, second = q & 1 ? s : c;
  *sine = q & 2 ? -first : first;
  *cosine = (q + 1) & 2 ? -second : second;
}
__KILN_DEVICE__ float sinf(float x) {
  float s, c;
  sincosf(x, &s, &c);
  return x == 0.0f ? x : s;
}
__KILN_DEVICE__ float cosf(float x) {
  float s, c;
  sincosf(x, &s, &c);
  return c;
}
__KILN_DEVICE__ float tanf(float x) {
  float s, c;
  sincosf(x, &s, &c);
  return x == 0.0f ? x : s / c;
}
// Double: reduced with three parts of π/2, exact for |x| up to 2^30 or so; beyond it the error grows with x.
__KILN_DEVICE__ void sincos(double x, double* sine, double* cosine) {
  if (!isfinite(x)) {
    *sine = *cosine = (double)NAN;
    return;
  }
  double n = rint(x * 0.63661977236758134);
  double f = fma(n, -1.4973849048591833e-33, fma(n, -6.1232339957367660e-17, fma(n, -1.5707963267948966, x))), s = f * f;
  long q = (long)n;
  double r = -7.6471637318198165e-13;  // -1/15!, 1/13!, ...
  r = fma(r, s, 1.6059043836821613e-10);
  r = fma(r, s, -2.5052108385441719e-8);
  r = fma(r, s, 2.7557319223985893e-6);
  r = fma(r, s, -1.9841269841269841e-4);
  r = fma(r, s, 8.3333333333333333e-3);
  r = fma(r, s, -1.6666666666666667e-1);
  double sin_f = fma(r, s * f, f);
  double t = 4.7794773323873853e-14;  // 1/16!, -1/14!, ...
  t = fma(t, s, -1.1470745597729725e-11);
  t = fma(t, s, 2.0876756987868099e-9);
  t = fma(t, s, -2.7557319223985891e-7);
  t = fma(t, s, 2.4801587301587302e-5);
  t = fma(t, s, -1.3888888888888889e-3);
  t = fma(t, s, 4.1666666666666667e-2);
  t = fma(t, s, -0.5);
  double cos_f = fma(t, s, 1.0);
  double first = q & 1 ? cos_f : sin_f, second = q & 1 ? sin_f : cos_f;
  *sine = q & 2 ? -first : first;
  *cosine = (q + 1) & 2 ? -second : second;
}
__KILN_DEVICE__ double sin(double x) {
  double s, c;
  sincos(x, &s, &c);
  return x == 0.0 ? x : s;
}
__KILN_DEVICE__ double cos(double x) {
  double s, c;
  sincos(x, &s, &c);
  return c;
}
__KILN_DEVICE__ double tan(double x) {
  double s, c;
  sincos(x, &s, &c);
  return x == 0.0 ? x : s / c;
}
// atan by halving the argument's range three times is exact enough in double; float goes through it.
__KILN_DEVICE__ double atan(double x) {
  double a = fabs(x);
  if (x != x || a == 0.0) return x;
  bool inverted = a > 1.0;
  double t = inverted ? 1.0 / a : a, offset = 0.0;
  if (t > 0.41421356237309503) offset = 0.78539816339744828, t = (t - 1.0) / (t + 1.0);        // [-0.414, 0]
  bool low = t < -0.19891236737965800, high = t > 0.19891236737965800;
  if (low) offset -= 0.39269908169872414, t = (t + 0.41421356237309503) / (1.0 - 0.41421356237309503 * t);
  if (high) offset += 0.39269908169872414, t = (t - 0.41421356237309503) / (1.0 + 0.41421356237309503 * t);
  double s = t * t, r = 1.0 / 23.0;
  for (double k = 21.0; k >= 3.0; k -= 2.0) r = 1.0 / k - r * s;
  double y = offset + (t - t * s * r);
  if (inverted) y = 1.5707963267948966 - y + 6.123233995736766e-17;
  return copysign(y, x);
}
__KILN_DEVICE__ double atan2(double y, double x) {
  if (x != x || y != y) return x + y;
  double ax = fabs(x), ay = fabs(y), angle;
  if (ax == 0.0 && ay == 0.0) angle = 0.0;
  else if (isinf(ax) && isinf(ay)) angle = 0.78539816339744828;
  else angle = ay > ax ? 1.5707963267948966 - atan(ax / ay) : atan(ay / ax);
  return copysign(signbit(x) ? 3.1415926535897931 - angle : angle, y);
}
__KILN_DEVICE__ double asin(double x) { return fabs(x) > 1.0 ? (double)NAN : atan2(x, sqrt((1.0 - x) * (1.0 + x))); }
__KILN_DEVICE__ double acos(double x) { return fabs(x) > 1.0 ? (double)NAN : atan2(sqrt((1.0 - x) * (1.0 + x)), x); }
__KILN_DEVICE__ float atanf(float x) { return (float)atan((double)x); }
__KILN_DEVICE__ float atan2f(float y, float x) { return (float)atan2((double)y, (double)x); }
__KILN_DEVICE__ float asinf(float x) { return (float)asin((double)x); }
__KILN_DEVICE__ float acosf(float x) { return (float)acos((double)x); }

// ---- Hyperbolic functions ----

__KILN_DEVICE__ float tanhf(float x) {
  float a = fabsf(x);
  if (a < 0.55f) {  // minimax
    float s = x * x, r = 1.57394409e-2f;
    r = fmaf(r, s, -5.23025580e-2f);
    r = fmaf(r, s, 1.33152470e-1f);
    r = fmaf(r, s, -3.33327681e-1f);
    return fmaf(r, s * x, x);
  }
  return x != x ? x : copysignf(1.0f - 2.0f / (expf(2.0f * fminf(a, 20.0f)) + 1.0f), x);
}
__KILN_DEVICE__ double tanh(double x) {
  double a = fabs(x), e = expm1(-2.0 * a);
  return x != x ? x : copysign(-e / (2.0 + e), x);
}
__KILN_DEVICE__ double sinh(double x) {
  double a = fabs(x);
  if (a < 0.3) {
    double s = x * x, r = 1.0;
    for (double k = 14.0; k >= 2.0; k -= 2.0) r = fma(r, s / (k * (k + 1.0)), 1.0);
    return r * x;
  }
  double e = exp(a * 0.5);
  return copysign(a > 40.0 ? 0.5 * e * e : 0.5 * (e * e - 1.0 / (e * e)), x);
}
__KILN_DEVICE__ double cosh(double x) {
  double e = exp(fabs(x) * 0.5);
  return 0.5 * e * e + 0.5 / e / e;
}
__KILN_DEVICE__ double asinh(double x) {
  double a = fabs(x);
  return a == 0.0 || !isfinite(x) ? x : copysign(a > 1e8 ? log(a) + 0.69314718055994531 : log1p(a + a * a / (1.0 + sqrt(fma(a, a, 1.0)))), x);
}
__KILN_DEVICE__ double acosh(double x) {
  if (!(x >= 1.0)) return (double)NAN;
  return x > 1e8 ? log(x) + 0.69314718055994531 : log1p((x - 1.0) + sqrt((x - 1.0) * (x + 1.0)));
}
__KILN_DEVICE__ double atanh(double x) {
  double a = fabs(x);
  return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}
__KILN_DEVICE__ float sinhf(float x) { return (float)sinh((double)x); }
__KILN_DEVICE__ float coshf(float x) { return (float)cosh((double)x); }
__KILN_DEVICE__ float asinhf(float x) { return (float)asinh((double)x); }
__KILN_DEVICE__ float acoshf(float x) { return (float)acosh((double)x); }
__KILN_DEVICE__ float atanhf(float x) { return (float)atanh((double)x); }

// ---- Roots, remainders, the error function ----

__KILN_DEVICE__ double cbrt(double x) {
  if (x == 0.0 || !isfinite(x)) return x;
  int n;
  double m = frexp(fabs(x), &n);
  int third = (n + 3000) / 3 - 1000, rest = n - 3 * third;
  m = ldexp(m, rest);                       // [0.5, 4)
  double y = 0.5 + 0.5 * m - 0.055 * m * m;  // Newton from a rough start
  for (int i = 0; i < 6; ++i) y -= (y - m / (y * y)) / 3.0;
  return copysign(ldexp(y, third), x);
}
__KILN_DEVICE__ float cbrtf(float x) { return (float)cbrt((double)x); }
__KILN_DEVICE__ double hypot(double x, double y) {
  double a = fmax(fabs(x), fabs(y)), b = fmin(fabs(x), fabs(y));
  if (isinf(x) || isinf(y)) return (double)INFINITY;
  return a == 0.0 || a != a ? a : a * sqrt(fma(b / a, b / a, 1.0));
}
__KILN_DEVICE__ float hypotf(float x, float y) {
  if (isinf(x) || isinf(y)) return INFINITY;
  return (float)sqrt((double)x * (double)x + (double)y * (double)y);
}
// The remainder with the dividend's sign, bit by bit where the quotient is large: exact, as in C.
__KILN_DEVICE__ double fmod(double x, double y) {
  double a = fabs(x), b = fabs(y);
  if (!isfinite(x) || b != b || b == 0.0) return (double)NAN;
  while (a >= b) {
    int ea, eb;
    frexp(a, &ea);
    frexp(b, &eb);
    double part = ldexp(b, ea - eb);
    if (part > a) part *= 0.5;
    a -= part;
  }
  return copysign(a, x);
}
__KILN_DEVICE__ float fmodf(float x, float y) { return (float)fmod((double)x, (double)y); }
__KILN_DEVICE__ double remainder(double x, double y) {
  double b = fabs(y), r;
  if (!isfinite(x) || b != b || b == 0.0) return (double)NAN;
  if (isinf(b)) return x;
  r = fabs(fmod(x, b + b));
  if (r > b) r -= b + b;  // in (-b, b]
  if (r > 0.5 * b) r -= b;
  else if (r < -0.5 * b) r += b;
  return signbit(x) ? -r : r;
}
__KILN_DEVICE__ float remainderf(float x, float y) { return (float)remainder((double)x, (double)y); }

// erf by its series near zero, erfc by a continued fraction away from it.
__KILN_DEVICE__ double __kiln_erf_series(double a) {
  double sum = 0.0, term = a, s = a * a;
  for (double k = 0.0; k < 40.0; k += 1.0) {
    sum += term / (2.0 * k + 1.0);
    term *= -s / (k + 1.0);
  }
  return sum * 1.1283791670955126;
}
__KILN_DEVICE__ double __kiln_erfc_fraction(double a) {
  double f = a;
  for (double k = 150.0; k >= 1.0; k -= 1.0) f = a + 0.5 * k / f;
  double square = a * a, rest = fma(a, a, -square);
  double e = exp(-square);
  return fma(-e, rest, e) * 0.56418958354775629 / f;
}
__KILN_DEVICE__ double erf(double x) {
  double a = fabs(x);
  return x != x ? x : copysign(a < 1.2 ? __kiln_erf_series(a) : 1.0 - __kiln_erfc_fraction(fmin(a, 30.0)), x);
}
__KILN_DEVICE__ double erfc(double x) {
  double a = fabs(x);
  if (x != x) return x;
  double upper = a < 1.2 ? 1.0 - __kiln_erf_series(a) : __kiln_erfc_fraction(fmin(a, 30.0));
  return x < 0.0 ? 2.0 - upper : upper;
}
__KILN_DEVICE__ float erff(float x) {  // Juffa: two minimax polynomials
  float a = fabsf(x), r, s, u;
  s = x * x;
  if (a > 0.927734375f) {
    r = fmaf(-1.72853470e-5f, a, 3.83197126e-4f);
    u = fmaf(-3.88396438e-3f, a, 2.42546219e-2f);
    r = fmaf(r, s, u);
    r = fmaf(r, a, -1.06777877e-1f);
    r = fmaf(r, a, -6.34846687e-1f);
    r = fmaf(r, a, -1.28717512e-1f);
    r = fmaf(r, a, -a);
    return x != x ? x : copysignf(1.0f - expf(fmaxf(r, -100.0f)), x);
  }
  r = -5.96761703e-4f;
  r = fmaf(r, s, 4.99119423e-3f);
  r = fmaf(r, s, -2.67681349e-2f);
  r = fmaf(r, s, 1.12819925e-1f);
  r = fmaf(r, s, -3.76125336e-1f);
  r = fmaf(r, s, 1.28379166e-1f);
  return fmaf(r, x, x);
}
__KILN_DEVICE__ float erfcf(float x) { return (float)erfc((double)x); }

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
