// Functions, structs, templates, constants, grids of several dimensions, and the rules of launches.
#include <hip/hip_runtime.h>

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __noinline__ float polynomial(float x, const float* c, int n) {
  float r = 0;
  for (int k = 0; k < n; ++k) r = r * x + c[k];
  return r;
}
__constant__ float coefficients[5] = {0.5f, -1.25f, 2.0f, 0.125f, -3.0f};
KILN_OPERATOR("corpus", "calls") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(calls, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void calls(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float local[3] = {x[i], 1.0f, x[(i + 1) % n]};
  y[i] = polynomial(x[i], coefficients, 5) + polynomial(0.5f, local, 3) * polynomial(x[i], local, 2);
}

__device__ __noinline__ int twice(int v) { return v * 2 + 1; }
__device__ __noinline__ int four(int v) { return twice(twice(v)) - 3; }
KILN_OPERATOR("corpus", "calls_of_calls") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(calls_of_calls, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void calls_of_calls(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v = x[i];
  for (int k = 0; k < v % 4; ++k) v = four(v) & 0xffff;
  y[i] = v + twice(i);
}

__device__ __noinline__ void swap_if(int* a, int* b, bool yes) {
  if (!yes) return;
  int t = *a;
  *a = *b;
  *b = t;
}
KILN_OPERATOR("corpus", "pointers_to_locals") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(pointers_to_locals, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void pointers_to_locals(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v[4] = {x[i], x[(i + 1) % n], x[(i + 2) % n], x[(i + 3) % n]};
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j) swap_if(&v[j], &v[j + 1], v[j] > v[j + 1]);
  y[i] = v[0] + 3 * v[1] + 5 * v[2] + 7 * v[3];
}

template <int Power, class T>
__device__ T power(T x) {
  if constexpr (Power == 0) return 1;
  else return x * power<Power - 1>(x);
}
KILN_OPERATOR("corpus", "templates") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(templates, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void templates(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  auto mix = [=](int a, int b) { return power<3>(a % 11) + power<2>(b % 7); };
  y[i] = mix(x[i], i) - power<1>(x[i]);
}

struct complex_number {
  float re, im;
  __device__ complex_number operator*(complex_number b) const { return {re * b.re - im * b.im, re * b.im + im * b.re}; }
  __device__ complex_number operator+(complex_number b) const { return {re + b.re, im + b.im}; }
};
// Five steps of z^2 + c.
KILN_OPERATOR("corpus", "complex_structs") KILN_OUTPUT(0, float32, dims(elements(input0) / 2)) KILN_LAUNCH(complex_structs, per_element(elements(input0) / 2), input0, output0, elements(input0) / 2)
__global__ void complex_structs(const complex_number* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  complex_number z{0, 0};
  for (int k = 0; k < 5; ++k) z = z * z + x[i];
  y[i] = z.re + z.im * 10;
}

struct record {
  int key;
  short parts[3];
  unsigned char flag;
  float value;
};
KILN_OPERATOR("corpus", "records") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(records, per_element(elements(input0) / 4), input0, output0, elements(input0) / 4)
__global__ void records(const record* x, record* y, int n) {
  int i = index();
  if (i >= n) return;
  record r = x[i];
  r.key += r.parts[i % 3];
  r.parts[(i + 1) % 3] = (short)(r.flag * 3);
  r.flag ^= 0x5a;
  r.value = (float)r.key * 0.5f;
  y[i] = r;
}

union bits_of {
  float f;
  unsigned u;
  unsigned char b[4];
};
KILN_OPERATOR("corpus", "unions") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(unions, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void unions(const float* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  bits_of v;
  v.f = x[i];
  unsigned char t = v.b[0];
  v.b[0] = v.b[3];
  v.b[3] = t;
  y[i] = (int)v.u;
}

__constant__ int primes[10] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
KILN_OPERATOR("corpus", "constant_table") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(constant_table, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void constant_table(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  static const unsigned char local[6] = {9, 7, 5, 3, 1, 200};
  y[i] = primes[x[i] % 10] * local[i % 6];
}

KILN_OPERATOR("corpus", "stride_loop") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(stride_loop, per_tile(3, 1, 1, 64, 1, 1), input0, output0, elements(input0))
__global__ void stride_loop(const float* x, float* y, int n) {
  for (int i = index(); i < n; i += gridDim.x * blockDim.x) y[i] = x[i] + gridDim.x * 1000 + blockDim.x;
}

KILN_OPERATOR("corpus", "grid_of_three") KILN_OUTPUT(0, int32, dims(4, 6, 10)) KILN_LAUNCH(grid_of_three, per_tile(5, 3, 2, 2, 2, 2), output0)
__global__ void grid_of_three(int* y) {
  int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.z * blockDim.z + threadIdx.z;
  y[(c * 6 + b) * 10 + a] = a + 100 * b + 10000 * c + 1000000 * (int)(gridDim.x + gridDim.y * gridDim.z) + (int)(blockDim.x * blockDim.y * blockDim.z);
}

KILN_OPERATOR("corpus", "row_means") KILN_OUTPUT(0, float32, dims(dim(input0, 0))) KILN_LAUNCH(row_means, per_row(dim(input0, 0)), input0, output0, dim(input0, 1))
__global__ void row_means(const float* x, float* y, int columns) {
  __shared__ float parts[1024];
  float sum = 0;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += x[(long)blockIdx.x * columns + k];
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0;
    for (int k = 0; k < (int)blockDim.x; ++k) sum += parts[k];
    y[blockIdx.x] = sum / columns;
  }
}

KILN_OPERATOR("corpus", "scalars") KILN_ATTRIBUTE(slope, 0.5) KILN_ATTRIBUTE(shift, 3) KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(scalars, per_element(elements(input0)), input0, output0, elements(input0), slope, shift)
__global__ void scalars(const float* x, float* y, long n, float slope, int shift) {
  int i = index();
  if (i < n) y[i] = x[i] * slope + shift;
}

KILN_OPERATOR("corpus", "mathematics") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(mathematics, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void mathematics(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float v = x[i];
  y[i] = expf(v) + logf(fabsf(v) + 0.1f) + sinf(v * 3) + cosf(v) + tanhf(v) + powf(fabsf(v) + 0.5f, 1.5f) + erff(v) + sqrtf(fabsf(v));
}

// The compiler's own functions, which need a library where the target has none.
KILN_OPERATOR("corpus", "builtin_mathematics") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(builtin_mathematics, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void builtin_mathematics(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float v = x[i];
  y[i] = __builtin_expf(v) + __builtin_logf(v * v + 0.1f) + __builtin_sinf(v) + __builtin_cosf(v) + __builtin_powf(v * v + 0.5f, 0.7f) + __builtin_exp2f(v) + __builtin_log2f(v * v + 1) + __builtin_log10f(v * v + 2) + __builtin_fmodf(v * 10, 3.0f);
}
