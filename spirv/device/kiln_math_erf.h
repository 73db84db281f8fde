// The error function, of both types. Included by kiln_math.h alone.
#pragma once

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
