// Integers, vectors, half and bfloat16 under their usual names (kiln_hip.h).
#pragma once

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32767 - 1)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
#define INT_MIN INT32_MIN
#define INT_MAX INT32_MAX
#define UINT_MAX UINT32_MAX
#define CHAR_BIT 8
#define SHRT_MIN INT16_MIN
#define SHRT_MAX INT16_MAX
#define LONG_MIN INT64_MIN
#define LONG_MAX INT64_MAX
#define ULONG_MAX UINT64_MAX
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
#define SIZE_MAX UINT64_MAX
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#ifndef NULL
#define NULL 0
#endif

// Vectors of 2 and 4 are Clang's vector types: x, y, z, w, arithmetic by element, loaded and stored whole. Vectors of 3 are structs.
#define __KILN_VECTORS__(type, name)                                                                                              \
  typedef type name##2 __attribute__((ext_vector_type(2)));                                                                       \
  typedef type name##4 __attribute__((ext_vector_type(4)));                                                                       \
  struct name##1 { type x; };                                                                                                     \
  struct name##3 { type x, y, z; };                                                                                               \
  __KILN_DEVICE__ name##1 make_##name##1(type x) { return {x}; }                                                                  \
  __KILN_DEVICE__ name##2 make_##name##2(type x, type y) { return name##2{x, y}; }                                                \
  __KILN_DEVICE__ name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                            \
  __KILN_DEVICE__ name##4 make_##name##4(type x, type y, type z, type w) { return name##4{x, y, z, w}; }
__KILN_VECTORS__(signed char, char)
__KILN_VECTORS__(unsigned char, uchar)
__KILN_VECTORS__(short, short)
__KILN_VECTORS__(unsigned short, ushort)
__KILN_VECTORS__(int, int)
__KILN_VECTORS__(unsigned, uint)
__KILN_VECTORS__(long, long)
__KILN_VECTORS__(unsigned long, ulong)
__KILN_VECTORS__(long long, longlong)
__KILN_VECTORS__(unsigned long long, ulonglong)
__KILN_VECTORS__(float, float)
__KILN_VECTORS__(double, double)

// ---- half: the compiler's own type, with arithmetic and conversions ----

typedef _Float16 __half;
typedef _Float16 half;
typedef __half __half2 __attribute__((ext_vector_type(2)));
typedef __half2 half2;
__KILN_DEVICE__ float __half2float(__half x) { return (float)x; }
__KILN_DEVICE__ __half __float2half(float x) { return (__half)x; }
__KILN_DEVICE__ __half __float2half_rn(float x) { return (__half)x; }
__KILN_DEVICE__ __half2 __floats2half2_rn(float x, float y) { return __half2{(__half)x, (__half)y}; }
__KILN_DEVICE__ __half2 __half2half2(__half x) { return __half2{x, x}; }
__KILN_DEVICE__ float __low2float(__half2 x) { return (float)x.x; }
__KILN_DEVICE__ float __high2float(__half2 x) { return (float)x.y; }

// ---- bfloat16: 16 bits of storage, arithmetic in float, rounded to nearest even ----

struct __hip_bfloat16 {
  unsigned short bits;
  __hip_bfloat16() = default;
  __device__ __forceinline__ __hip_bfloat16(float x) {
    unsigned word = __builtin_bit_cast(unsigned, x);
    bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = (unsigned short)((is_nan ? word | 0x400000u : word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  __device__ __forceinline__ operator float() const { return __builtin_bit_cast(float, (unsigned)bits << 16); }
  __device__ __forceinline__ __hip_bfloat16& operator+=(float x) { return *this = __hip_bfloat16((float)*this + x); }
  __device__ __forceinline__ __hip_bfloat16& operator-=(float x) { return *this = __hip_bfloat16((float)*this - x); }
  __device__ __forceinline__ __hip_bfloat16& operator*=(float x) { return *this = __hip_bfloat16((float)*this * x); }
  __device__ __forceinline__ __hip_bfloat16& operator/=(float x) { return *this = __hip_bfloat16((float)*this / x); }
};
typedef __hip_bfloat16 hip_bfloat16;
typedef __hip_bfloat16 __nv_bfloat16;
__KILN_DEVICE__ float __bfloat162float(__hip_bfloat16 x) { return (float)x; }
__KILN_DEVICE__ __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }

// ---- Reinterpretation ----

__KILN_DEVICE__ int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__KILN_DEVICE__ unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__KILN_DEVICE__ float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__KILN_DEVICE__ float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__KILN_DEVICE__ long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__KILN_DEVICE__ double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__KILN_DEVICE__ unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
__KILN_DEVICE__ __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }
