// Math functions of float. Where a polynomial in float is not worth its own, they go through double. Included by kiln_math.h alone.
#pragma once

// ---- Powers of two and scaling ----

// x · 2^n, n as it comes: in steps that are powers of two themselves.
__KILN_DEVICE__ float ldexpf(float x, int n) {
  n = n < -300 ? -300 : (n > 300 ? 300 : n);
  int a = n / 3, b = (n - a) / 2, c = n - a - b;
  return x * __int_as_float((a + 127) << 23) * __int_as_float((b + 127) << 23) * __int_as_float((c + 127) << 23);
}
__KILN_DEVICE__ float scalbnf(float x, int n) { return ldexpf(x, n); }
__KILN_DEVICE__ float frexpf(float x, int* exponent) {
  *exponent = 0;
  if (x == 0.0f || !isfinite(x)) return x;
  int lift = fabsf(x) < FLT_MIN ? 24 : 0;
  unsigned bits = __float_as_uint(lift ? x * 16777216.0f : x);
  *exponent = (int)((bits >> 23) & 255u) - 126 - lift;
  return __uint_as_float((bits & 0x807fffffu) | 0x3f000000u);
}
__KILN_DEVICE__ float modff(float x, float* whole) {
  *whole = truncf(x);
  return isinf(x) ? copysignf(0.0f, x) : copysignf(x - *whole, x);
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
__KILN_DEVICE__ float log2f(float x) { return (float)log2((double)x); }
__KILN_DEVICE__ float log10f(float x) { return (float)log10((double)x); }
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
__KILN_DEVICE__ float sinhf(float x) { return (float)sinh((double)x); }
__KILN_DEVICE__ float coshf(float x) { return (float)cosh((double)x); }
__KILN_DEVICE__ float asinhf(float x) { return (float)asinh((double)x); }
__KILN_DEVICE__ float acoshf(float x) { return (float)acosh((double)x); }
__KILN_DEVICE__ float atanhf(float x) { return (float)atanh((double)x); }

// ---- Roots and remainders ----

__KILN_DEVICE__ float cbrtf(float x) { return (float)cbrt((double)x); }
__KILN_DEVICE__ float hypotf(float x, float y) {
  if (isinf(x) || isinf(y)) return INFINITY;
  return (float)sqrt((double)x * (double)x + (double)y * (double)y);
}
__KILN_DEVICE__ float fmodf(float x, float y) { return (float)fmod((double)x, (double)y); }
__KILN_DEVICE__ float remainderf(float x, float y) { return (float)remainder((double)x, (double)y); }
