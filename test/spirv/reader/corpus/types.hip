// Types: halves, bfloat16, doubles, integers of every width, bool, vectors, conversions.
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KILN_OPERATOR("corpus", "half_arithmetic") KILN_OUTPUT(0, float16, same_as(input0)) KILN_LAUNCH(half_arithmetic, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void half_arithmetic(const __half* x, __half* y, int n) {
  int i = index();
  if (i >= n) return;
  __half v = x[i];
  y[i] = v > (__half)0.5f ? v * v + (__half)1.0f : (__half)(__half2float(v) * 3.0f) - v;
}

KILN_OPERATOR("corpus", "half_pairs") KILN_OUTPUT(0, float16, same_as(input0)) KILN_LAUNCH(half_pairs, per_element(elements(input0) / 2), input0, output0, elements(input0) / 2)
__global__ void half_pairs(const __half2* x, __half2* y, int n) {
  int i = index();
  if (i >= n) return;
  __half2 v = x[i];
  y[i] = __hadd2(__hmul2(v, v), __floats2half2_rn(0.25f, -0.25f));
}

KILN_OPERATOR("corpus", "bfloat_arithmetic") KILN_OUTPUT(0, bfloat16, same_as(input0)) KILN_LAUNCH(bfloat_arithmetic, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void bfloat_arithmetic(const hip_bfloat16* x, hip_bfloat16* y, int n) {
  int i = index();
  if (i >= n) return;
  float v = (float)x[i];
  y[i] = hip_bfloat16(v * v - 0.5f * v);
}

KILN_OPERATOR("corpus", "doubles") KILN_OUTPUT(0, float64, same_as(input0)) KILN_LAUNCH(doubles, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void doubles(const double* x, double* y, int n) {
  int i = index();
  if (i >= n) return;
  double v = x[i];
  y[i] = sqrt(fabs(v)) / (1.0 + v * v) + floor(v * 4) - (double)(float)v;
}

KILN_OPERATOR("corpus", "longs") KILN_OUTPUT(0, int64, same_as(input0)) KILN_LAUNCH(longs, per_element(elements(input0)), input0, input1, output0, elements(input0))
__global__ void longs(const long* x, const long* z, long* y, int n) {
  int i = index();
  if (i >= n) return;
  long a = x[i], b = z[i] | 1;
  y[i] = a / b + a % b * 3 + (long)((unsigned long)a / (unsigned long)(b < 0 ? -b : b)) + ((a << 7) ^ (a >> 9)) + (long)((unsigned long)a >> 13);
}

KILN_OPERATOR("corpus", "bytes_saturate") KILN_OUTPUT(0, int8, same_as(input0)) KILN_LAUNCH(bytes_saturate, per_element(elements(input0)), input0, input1, output0, elements(input0))
__global__ void bytes_saturate(const signed char* x, const signed char* z, signed char* y, int n) {
  int i = index();
  if (i >= n) return;
  int sum = x[i] + z[i];
  y[i] = (signed char)(sum > 127 ? 127 : sum < -128 ? -128 : sum);
}

KILN_OPERATOR("corpus", "unsigned_bytes") KILN_OUTPUT(0, uint8, same_as(input0)) KILN_LAUNCH(unsigned_bytes, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void unsigned_bytes(const unsigned char* x, unsigned char* y, int n) {
  int i = index();
  if (i >= n) return;
  unsigned char v = x[i];
  y[i] = (unsigned char)((v * 7) >> 2) + (v > 100) - (unsigned char)(v << 3);
}

KILN_OPERATOR("corpus", "shorts") KILN_OUTPUT(0, int16, same_as(input0)) KILN_LAUNCH(shorts, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void shorts(const short* x, short* y, int n) {
  int i = index();
  if (i >= n) return;
  short v = x[i];
  y[i] = (short)(v * v) + (short)(v >> 3) - (short)((unsigned short)v >> 5) + (short)(v / 7) * (v % 3);
}

KILN_OPERATOR("corpus", "booleans") KILN_OUTPUT(0, bool, same_as(input0)) KILN_LAUNCH(booleans, per_element(elements(input0)), input0, input1, output0, elements(input0))
__global__ void booleans(const bool* x, const bool* z, bool* y, int n) {
  int i = index();
  if (i >= n) return;
  y[i] = (x[i] && !z[i]) || (x[i] == z[i] && i % 3 == 0);
}

KILN_OPERATOR("corpus", "float4_vectors") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(float4_vectors, per_element(elements(input0) / 4), input0, output0, elements(input0) / 4)
__global__ void float4_vectors(const float4* x, float4* y, int n) {
  int i = index();
  if (i >= n) return;
  float4 v = x[i], w = v * 2.0f + v.wzyx;
  w[i & 3] = v.x + v.y;
  y[i] = w;
}

KILN_OPERATOR("corpus", "int_vectors") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(int_vectors, per_element(elements(input0) / 2), input0, output0, elements(input0) / 2)
__global__ void int_vectors(const int2* x, int2* y, int n) {
  int i = index();
  if (i >= n) return;
  int2 v = x[i];
  y[i] = make_int2(v.y * 3 + v.x, (v.x > v.y) ? v.x - v.y : v.y << 2);
}

KILN_OPERATOR("corpus", "conversions") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(conversions, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void conversions(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float v = x[i] * 100;
  y[i] = (float)(int)v + (float)(unsigned)fabsf(v) * 0.5f + (float)(long)(v * 1000) + (float)(signed char)(int)v + (float)(unsigned char)(int)fabsf(v) + (float)(double)v + __half2float(__float2half(v));
}

KILN_OPERATOR("corpus", "bit_functions") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(bit_functions, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void bit_functions(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v = x[i];
  y[i] = __popc(v) + 100 * __clz(v) + 10000 * __ffs(v) + (int)(__brev(v) >> 20) + __mulhi(v, 0x12345678) + (int)__umulhi(v, 0x87654321u) + __popcll((long long)v * v) + __clzll(v);
}

KILN_OPERATOR("corpus", "float_bits") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(float_bits, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void float_bits(const float* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int b = __float_as_int(x[i]);
  y[i] = b < 0 ? ~b : b ^ (int)__float_as_uint(__int_as_float(b & 0x7fffffff) + 1.0f);
}
