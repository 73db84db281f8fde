// Math functions of double. Included by kiln_math.h alone.
#pragma once

// ---- Powers of two and scaling ----

// x · 2^n, n as it comes: in steps that are powers of two themselves.
__KILN_DEVICE__ double ldexp(double x, int n) {
  n = n < -2200 ? -2200 : (n > 2200 ? 2200 : n);
  int a = n / 3, b = (n - a) / 2, c = n - a - b;
  return x * __longlong_as_double((long long)(a + 1023) << 52) * __longlong_as_double((long long)(b + 1023) << 52) * __longlong_as_double((long long)(c + 1023) << 52);
}
__KILN_DEVICE__ double scalbn(double x, int n) { return ldexp(x, n); }
__KILN_DEVICE__ double frexp(double x, int* exponent) {
  *exponent = 0;
  if (x == 0.0 || !isfinite(x)) return x;
  int lift = fabs(x) < DBL_MIN ? 54 : 0;
  long long bits = __double_as_longlong(lift ? x * 18014398509481984.0 : x);
  *exponent = (int)((bits >> 52) & 2047) - 1022 - lift;
  return __longlong_as_double((bits & (long long)0x800fffffffffffffull) | 0x3fe0000000000000ll);
}
__KILN_DEVICE__ double logb(double x) {
  int n;
  if (x == 0.0) return -(double)INFINITY;
  if (!isfinite(x)) return x * x;
  frexp(x, &n);
  return (double)(n - 1);
}
__KILN_DEVICE__ int ilogb(double x) {
  if (x == 0.0 || x != x) return INT32_MIN;
  return isinf(x) ? INT32_MAX : (int)logb(x);
}
__KILN_DEVICE__ float logbf(float x) { return (float)logb((double)x); }
__KILN_DEVICE__ int ilogbf(float x) { return ilogb((double)x); }
__KILN_DEVICE__ double modf(double x, double* whole) {
  *whole = trunc(x);
  return isinf(x) ? copysign(0.0, x) : copysign(x - *whole, x);
}

// ---- Exponentials and logarithms ----

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

// ---- Trigonometry ----

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

// ---- Hyperbolic functions ----

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

// ---- Roots and remainders ----

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
__KILN_DEVICE__ double hypot(double x, double y) {
  double a = fmax(fabs(x), fabs(y)), b = fmin(fabs(x), fabs(y));
  if (isinf(x) || isinf(y)) return (double)INFINITY;
  return a == 0.0 || a != a ? a : a * sqrt(fma(b / a, b / a, 1.0));
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
