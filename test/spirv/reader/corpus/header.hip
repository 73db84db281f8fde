// What the device header gives beyond the language: pairs of halves, bfloat16, namespace std, counted barriers, bits, gamma functions.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KILN_OPERATOR("corpus", "half_pair_functions") KILN_OUTPUT(0, float16, same_as(input0)) KILN_LAUNCH(half_pair_functions, per_element(elements(input0) / 2), input0, output0, elements(input0) / 2)
__global__ void half_pair_functions(const __half2* x, __half2* y, int n) {
  int i = index();
  if (i >= n) return;
  __half2 v = __hmax2(__hfma2(x[i], x[i], __float2half2_rn(-0.5f)), __habs2(__hneg2(x[i])));
  y[i] = __halves2half2(__hsub(__high2half(v), __low2half(v)), __hgt(v.x, v.y) ? hsqrt(v.y) : __hdiv(v.x, __float2half(2.0f)));
}

KILN_OPERATOR("corpus", "bfloat_functions") KILN_OUTPUT(0, bfloat16, same_as(input0)) KILN_LAUNCH(bfloat_functions, per_element(elements(input0) / 2), input0, output0, elements(input0) / 2)
__global__ void bfloat_functions(const __hip_bfloat162* x, __hip_bfloat162* y, int n) {
  int i = index();
  if (i >= n) return;
  float2 pair = __bfloat1622float2(x[i]);
  __hip_bfloat16 fused = __hfma(x[i].x, x[i].y, __float2bfloat16(pair.x));
  y[i] = __hmul2(__halves2bfloat162(fused, __hmin(x[i].x, __habs(x[i].y))), __float2bfloat162_rn(2.0f));
}

// T is any arithmetic type; what is no float counts twice.
template <class T>
__device__ std::enable_if_t<std::is_arithmetic_v<T>, float> weighed(T v) {
  float f = static_cast<float>(std::clamp(v, T(-1), std::numeric_limits<T>::max()));
  return std::is_same<T, float>::value ? f : 2 * f;
}
KILN_OPERATOR("corpus", "namespace_std") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(namespace_std, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void namespace_std(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float a = x[i], b = std::numeric_limits<float>::infinity();
  std::swap(a, b);
  y[i] = std::isinf(a) ? std::max(weighed(b), std::sqrt(std::abs(b))) + weighed(static_cast<int>(b * 4)) : 0;
}

KILN_OPERATOR("corpus", "counted_barriers") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(counted_barriers, per_row(ceil_div(elements(input0), 100), 100), input0, output0, elements(input0))
__global__ void counted_barriers(const int* x, int* y, int n) {
  int i = index(), v = i < n ? x[i] : 0;
  int even = __syncthreads_count(v % 2 == 0), large = __syncthreads_or(v > 999000), small = __syncthreads_and(v < 999999);
  if (i < n) y[i] = even * 4 + large * 2 + small;
}

KILN_OPERATOR("corpus", "bits_of_words") KILN_OUTPUT(0, int64, same_as(input0)) KILN_LAUNCH(bits_of_words, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void bits_of_words(const int64_t* x, int64_t* y, int n) {
  int i = index();
  if (i >= n) return;
  unsigned low = (unsigned)x[i], high = (unsigned)(x[i] >> 32);
  uint64_t sum = __funnelshift_l(low, high, 7) + (uint64_t)__funnelshift_r(low, high, 39) * 3 + __byte_perm(low, high, 0x6240) * 5ull;
  y[i] = (int64_t)(sum + __brevll((uint64_t)x[i])) + __mul64hi(x[i], -x[i] / 3) + (int64_t)__umul64hi((uint64_t)x[i], 0x123456789abcdef0ull) + __mul24((int)low, 5) + __float2int_rd((float)i * -0.3f) + __ldg(x + i);
}

KILN_OPERATOR("corpus", "gamma_functions") KILN_OUTPUT(0, float64, same_as(input0)) KILN_LAUNCH(gamma_functions, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void gamma_functions(const double* x, double* y, int n) {
  int i = index();
  if (i >= n) return;
  y[i] = tgamma(x[i]) / 8 + lgamma(x[i] * 7) + sinpi(x[i]) + nextafter(x[i], 9.0) + logb(x[i]);
}

// Two template arguments, one by its typedef: the launch may say it as the source does.
template <class T, int Factor>
__global__ void times(const T* x, T* y, int n) {
  int i = index();
  if (i < n) y[i] = x[i] * Factor;
}
template __global__ void times<int64_t, 3>(const int64_t*, int64_t*, int);
template __global__ void times<int64_t, 4>(const int64_t*, int64_t*, int);
KILN_OPERATOR("corpus", "named_instance") KILN_OUTPUT(0, int64, same_as(input0)) KILN_LAUNCH(times<int64_t, 3>, per_element(elements(input0)), input0, output0, elements(input0))

// An attribute that is a list, item by item; an input that nodes may leave out.
__global__ void padded(const float* x, const float* bias, float* y, int n, int before, int size, int has_bias) {
  int i = index();
  if (i < n) y[i] = (i < before || i - before >= size ? 0.0f : x[i - before]) + (has_bias ? bias[0] : 100.0f);
}
KILN_OPERATOR("corpus", "lists_and_left_out_inputs")
KILN_ATTRIBUTE(pads, list(2, 3))
KILN_OUTPUT(0, float32, dims(elements(input0) + item(pads, 0) + item(pads, -1) + length(pads) - 2))
KILN_LAUNCH(padded, per_element(elements(output0)), input0, input1, output0, elements(output0), item(pads, 0), elements(input0), has(input1))
