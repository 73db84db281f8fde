// Functions of half, half2, bfloat16 and bfloat162 under HIP's names. Both compute in float where a function is not exact in 16 bits, and round once.
// Included by kiln_hip.h behind the math functions; the types are in kiln_types.h.
#pragma once

// ---- What both have ----

#define __KILN_SMALL_FLOAT__(type, load, store)                                                        \
  __KILN_DEVICE__ type __hadd(type a, type b) { return store(load(a) + load(b)); }                     \
  __KILN_DEVICE__ type __hsub(type a, type b) { return store(load(a) - load(b)); }                     \
  __KILN_DEVICE__ type __hmul(type a, type b) { return store(load(a) * load(b)); }                     \
  __KILN_DEVICE__ type __hdiv(type a, type b) { return store(load(a) / load(b)); }                     \
  __KILN_DEVICE__ bool __heq(type a, type b) { return load(a) == load(b); }                            \
  __KILN_DEVICE__ bool __hne(type a, type b) { return load(a) != load(b); }                            \
  __KILN_DEVICE__ bool __hlt(type a, type b) { return load(a) < load(b); }                             \
  __KILN_DEVICE__ bool __hle(type a, type b) { return load(a) <= load(b); }                            \
  __KILN_DEVICE__ bool __hgt(type a, type b) { return load(a) > load(b); }                             \
  __KILN_DEVICE__ bool __hge(type a, type b) { return load(a) >= load(b); }                            \
  __KILN_DEVICE__ bool __hisnan(type a) { return load(a) != load(a); }                                 \
  __KILN_DEVICE__ int __hisinf(type a) { return isinf(load(a)) ? (load(a) > 0.0f ? 1 : -1) : 0; }      \
  __KILN_DEVICE__ type __hmax(type a, type b) { return store(fmaxf(load(a), load(b))); }               \
  __KILN_DEVICE__ type __hmin(type a, type b) { return store(fminf(load(a), load(b))); }               \
  __KILN_DEVICE__ type hexp(type a) { return store(expf(load(a))); }                                   \
  __KILN_DEVICE__ type hexp2(type a) { return store(exp2f(load(a))); }                                 \
  __KILN_DEVICE__ type hlog(type a) { return store(logf(load(a))); }                                   \
  __KILN_DEVICE__ type hlog2(type a) { return store(log2f(load(a))); }                                 \
  __KILN_DEVICE__ type hsin(type a) { return store(sinf(load(a))); }                                   \
  __KILN_DEVICE__ type hcos(type a) { return store(cosf(load(a))); }                                   \
  __KILN_DEVICE__ type hsqrt(type a) { return store(sqrtf(load(a))); }                                 \
  __KILN_DEVICE__ type hrsqrt(type a) { return store(rsqrtf(load(a))); }                               \
  __KILN_DEVICE__ type hrcp(type a) { return store(1.0f / load(a)); }                                  \
  __KILN_DEVICE__ type hfloor(type a) { return store(floorf(load(a))); }                               \
  __KILN_DEVICE__ type hceil(type a) { return store(ceilf(load(a))); }                                 \
  __KILN_DEVICE__ type htrunc(type a) { return store(truncf(load(a))); }                               \
  __KILN_DEVICE__ type hrint(type a) { return store(rintf(load(a))); }
__KILN_SMALL_FLOAT__(__half, (float), (__half))
__KILN_SMALL_FLOAT__(__hip_bfloat16, __bfloat162float, __hip_bfloat16)

// ---- half ----

__KILN_DEVICE__ __half __hfma(__half a, __half b, __half c) { return __builtin_fmaf16(a, b, c); }
__KILN_DEVICE__ __half __hneg(__half a) { return -a; }
__KILN_DEVICE__ __half __habs(__half a) { return __ushort_as_half(__half_as_ushort(a) & 0x7fff); }
__KILN_DEVICE__ int __half2int_rn(__half a) { return (int)rintf((float)a); }
__KILN_DEVICE__ int __half2int_rz(__half a) { return (int)(float)a; }
__KILN_DEVICE__ __half __int2half_rn(int a) { return (__half)a; }
__KILN_DEVICE__ __half __uint2half_rn(unsigned a) { return (__half)a; }
__KILN_DEVICE__ __half __double2half(double a) { return (__half)a; }

__KILN_DEVICE__ __half2 make_half2(__half x, __half y) { return __half2{x, y}; }
__KILN_DEVICE__ __half2 __halves2half2(__half x, __half y) { return __half2{x, y}; }
__KILN_DEVICE__ __half2 __float2half2_rn(float x) { return __half2{(__half)x, (__half)x}; }
__KILN_DEVICE__ __half2 __float22half2_rn(float2 x) { return __half2{(__half)x.x, (__half)x.y}; }
__KILN_DEVICE__ float2 __half22float2(__half2 x) { return float2{(float)x.x, (float)x.y}; }
__KILN_DEVICE__ __half __low2half(__half2 x) { return x.x; }
__KILN_DEVICE__ __half __high2half(__half2 x) { return x.y; }
__KILN_DEVICE__ __half2 __low2half2(__half2 x) { return __half2{x.x, x.x}; }
__KILN_DEVICE__ __half2 __high2half2(__half2 x) { return __half2{x.y, x.y}; }
__KILN_DEVICE__ __half2 __lowhigh2highlow(__half2 x) { return __half2{x.y, x.x}; }

// ---- bfloat16 ----

__KILN_DEVICE__ __hip_bfloat16 __hneg(__hip_bfloat16 a) {
  a.bits ^= 0x8000;
  return a;
}
__KILN_DEVICE__ __hip_bfloat16 __habs(__hip_bfloat16 a) {
  a.bits &= 0x7fff;
  return a;
}
// a * b is exact in float and the sum in double, but rounding that to float first could round twice: to odd, it cannot.
__KILN_DEVICE__ __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  double exact = (double)(float)a * (double)(float)b, addend = (double)(float)c, sum = exact + addend;
  double part = sum - exact, lost = (exact - (sum - part)) + (addend - part);
  long long bits = __double_as_longlong(sum);
  if (lost != 0.0 && !(bits & 1) && isfinite(sum)) bits += (lost > 0.0) == (sum > 0.0) ? 1 : -1;
  sum = __longlong_as_double(bits);
  float near = (float)sum;
  unsigned word = __float_as_uint(near);
  double rest = sum - (double)near;
  if (rest != 0.0 && isfinite(near) && !(word & 1u)) word += (rest > 0.0) == (near > 0.0f || (near == 0.0f && sum > 0.0)) ? 1u : ~0u;
  return __hip_bfloat16(__uint_as_float(word));
}
__KILN_DEVICE__ __hip_bfloat16 __float2bfloat16_rn(float x) { return __hip_bfloat16(x); }
__KILN_DEVICE__ __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16((float)x); }
__KILN_DEVICE__ __hip_bfloat16 __int2bfloat16_rn(int x) { return __hip_bfloat16((float)x); }
__KILN_DEVICE__ unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.bits; }
__KILN_DEVICE__ __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __builtin_bit_cast(__hip_bfloat16, x); }

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
};
typedef __hip_bfloat162 __nv_bfloat162;
__KILN_DEVICE__ __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
__KILN_DEVICE__ __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
__KILN_DEVICE__ __hip_bfloat162 __float2bfloat162_rn(float x) { return {__hip_bfloat16(x), __hip_bfloat16(x)}; }
__KILN_DEVICE__ __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__hip_bfloat16(x), __hip_bfloat16(y)}; }
__KILN_DEVICE__ __hip_bfloat162 __float22bfloat162_rn(float2 x) { return {__hip_bfloat16(x.x), __hip_bfloat16(x.y)}; }
__KILN_DEVICE__ float2 __bfloat1622float2(__hip_bfloat162 x) { return float2{(float)x.x, (float)x.y}; }
__KILN_DEVICE__ float __low2float(__hip_bfloat162 x) { return (float)x.x; }
__KILN_DEVICE__ float __high2float(__hip_bfloat162 x) { return (float)x.y; }

// ---- Pairs: one by one ----

#define __KILN_PAIR__(type, name, one) \
  __KILN_DEVICE__ type name(type a, type b) { return type{one(a.x, b.x), one(a.y, b.y)}; }
#define __KILN_PAIRS__(type)                                                                                                                     \
  __KILN_PAIR__(type, __hadd2, __hadd) __KILN_PAIR__(type, __hsub2, __hsub) __KILN_PAIR__(type, __hmul2, __hmul) __KILN_PAIR__(type, __h2div, __hdiv) \
  __KILN_PAIR__(type, __hmax2, __hmax) __KILN_PAIR__(type, __hmin2, __hmin)                                                                      \
  __KILN_DEVICE__ type __hfma2(type a, type b, type c) { return type{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }                            \
  __KILN_DEVICE__ type __hneg2(type a) { return type{__hneg(a.x), __hneg(a.y)}; }                                                                \
  __KILN_DEVICE__ type __habs2(type a) { return type{__habs(a.x), __habs(a.y)}; }                                                                \
  __KILN_DEVICE__ type h2exp(type a) { return type{hexp(a.x), hexp(a.y)}; }                                                                      \
  __KILN_DEVICE__ type h2log(type a) { return type{hlog(a.x), hlog(a.y)}; }                                                                      \
  __KILN_DEVICE__ type h2sqrt(type a) { return type{hsqrt(a.x), hsqrt(a.y)}; }                                                                   \
  __KILN_DEVICE__ type h2rsqrt(type a) { return type{hrsqrt(a.x), hrsqrt(a.y)}; }                                                                \
  __KILN_DEVICE__ type h2rcp(type a) { return type{hrcp(a.x), hrcp(a.y)}; }
__KILN_PAIRS__(__half2)
__KILN_PAIRS__(__hip_bfloat162)
