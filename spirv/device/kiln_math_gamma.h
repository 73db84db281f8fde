// The gamma function and its logarithm, of both types. Included by kiln_math.h alone.
#pragma once

// sin(π·x), exactly 0 at integers.
__KILN_DEVICE__ double sinpi(double x) {
  if (!isfinite(x)) return (double)NAN;
  double n = rint(2.0 * x), f = fma(-0.5, n, x), s, c;
  long q = (long)fmod(n, 4.0);
  sincos(3.1415926535897931 * f, &s, &c);
  s = q & 1 ? c : s;
  return x == trunc(x) ? copysign(0.0, x) : (q & 2 ? -s : s);
}
__KILN_DEVICE__ double cospi(double x) {
  if (!isfinite(x)) return (double)NAN;
  double a = fmod(fabs(x), 2.0), n = rint(2.0 * a), f = fma(-0.5, n, a), s, c;
  long q = (long)n;
  sincos(3.1415926535897931 * f, &s, &c);
  c = q & 1 ? -s : c;
  return f == 0.0 && (q & 1) ? 0.0 : (q & 2 ? -c : c);
}

// log Γ(2 + z), |z| ≤ ½: z·(1 − γ) + Σ (−1)^k (ζ(k) − 1)/k z^k, k from 2 on.
__KILN_DEVICE__ double __kiln_lgamma_series(double z) {
  double r = 3.1044247747322276e-11;
  r = fma(r, z, -6.4229645638381e-11);
  r = fma(r, z, 1.330476437424449e-10);
  r = fma(r, z, -2.7595228851242334e-10);
  r = fma(r, z, 5.731367241678862e-10);
  r = fma(r, z, -1.1921401405860912e-09);
  r = fma(r, z, 2.4836745438024785e-09);
  r = fma(r, z, -5.183475041970047e-09);
  r = fma(r, z, 1.0838659214896955e-08);
  r = fma(r, z, -2.2711094608943164e-08);
  r = fma(r, z, 4.7698101693639804e-08);
  r = fma(r, z, -1.0043224823968099e-07);
  r = fma(r, z, 2.1207184805554665e-07);
  r = fma(r, z, -4.492469198764566e-07);
  r = fma(r, z, 9.55141213040742e-07);
  r = fma(r, z, -2.039215753801366e-06);
  r = fma(r, z, 4.374866789907488e-06);
  r = fma(r, z, -9.439488275268397e-06);
  r = fma(r, z, 2.050721277567069e-05);
  r = fma(r, z, -4.492623673813314e-05);
  r = fma(r, z, 9.945751278180853e-05);
  r = fma(r, z, -0.00022315475845357939);
  r = fma(r, z, 0.0005096695247430425);
  r = fma(r, z, -0.001192753911703261);
  r = fma(r, z, 0.0028905103307415234);
  r = fma(r, z, -0.007385551028673986);
  r = fma(r, z, 0.020580808427784546);
  r = fma(r, z, -0.0673523010531981);
  r = fma(r, z, 0.3224670334241132);
  return fma(r * z, z, z * 0.42278433509846714);
}
// Stirling's series, x ≥ 16.
__KILN_DEVICE__ double __kiln_lgamma_large(double x) {
  double s = 1.0 / (x * x), r = 6.4102564102564103e-3;
  r = fma(r, s, -1.9175269175269175e-3);
  r = fma(r, s, 8.4175084175084175e-4);
  r = fma(r, s, -5.9523809523809524e-4);
  r = fma(r, s, 7.9365079365079365e-4);
  r = fma(r, s, -2.7777777777777778e-3);
  r = fma(r, s, 8.3333333333333333e-2);
  return (x - 0.5) * (log(x) - 1.0) + (0.41893853320467274 + r / x);
}
__KILN_DEVICE__ double __kiln_lgamma_positive(double x) {
  if (x < 0.5) return __kiln_lgamma_series(x) - log1p(x) - log(x);
  if (x < 1.5) return __kiln_lgamma_series(x - 1.0) - log1p(x - 1.0);
  if (x >= 16.0) return __kiln_lgamma_large(x);
  double product = 1.0;
  for (; x > 2.5; product *= x) x -= 1.0;
  return __kiln_lgamma_series(x - 2.0) + log(product);
}
__KILN_DEVICE__ double lgamma(double x) {
  if (x != x) return x;
  if (isinf(x)) return (double)INFINITY;
  if (x > 0.0) return x > 2.5e305 ? (double)INFINITY : __kiln_lgamma_positive(x);
  if (x == trunc(x)) return (double)INFINITY;
  // Γ(x) Γ(−x) = −π / (x sin πx)
  return log(3.1415926535897931 / fabs(x * sinpi(x))) - __kiln_lgamma_positive(-x);
}
__KILN_DEVICE__ double tgamma(double x) {
  if (x != x) return x;
  if (isinf(x)) return x > 0.0 ? x : (double)NAN;
  if (x == 0.0) return copysign((double)INFINITY, x);
  if (x < 0.0 && x == trunc(x)) return (double)NAN;
  if (x > 172.0) return (double)INFINITY;
  double a = fabs(x), product = 1.0, low = a;
  if (a > 185.0) return copysign(0.0, sinpi(x));
  for (; low > 2.5; product *= low) low -= 1.0;
  for (; low < 1.5; low += 1.0) product /= low;
  double gamma = product * exp(__kiln_lgamma_series(low - 2.0));
  if (x > 0.0) return gamma;
  double y = x * sinpi(x);
  return -3.1415926535897931 / y / gamma;
}
__KILN_DEVICE__ float lgammaf(float x) { return (float)lgamma((double)x); }
__KILN_DEVICE__ float tgammaf(float x) { return (float)tgamma((double)x); }
__KILN_DEVICE__ float sinpif(float x) { return (float)sinpi((double)x); }
__KILN_DEVICE__ float cospif(float x) { return (float)cospi((double)x); }
