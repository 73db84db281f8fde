// Small kernels for programs built by hand. Sizes are fixed: N floats unless said otherwise.
#include <math.h>
#include <stdint.h>
#include <string.h>
#define N 37

void add(void* const* b, int64_t begin, int64_t end) {
  const float *x = b[0], *y = b[1];
  float* out = b[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] + y[i];
}
void twice(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  float* out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = 2.0f * x[i];
}
void exponential(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  float* out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = expf(x[i]);
}
// Two launches with partial sums in scratch: parts[k] = sum of x over the k-th of 5 parts, then out[0] = sum of parts.
void sum_parts(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  float* parts = b[1];
  for (int64_t k = begin; k < end; ++k) {
    parts[k] = 0.0f;
    for (int64_t i = k * N / 5; i < (k + 1) * N / 5; ++i) parts[k] += x[i];
  }
}
void sum_total(void* const* b, int64_t begin, int64_t end) {
  const float* parts = b[0];
  float* out = b[1];
  (void)begin, (void)end;
  out[0] = 0.0f;
  for (int k = 0; k < 5; ++k) out[0] += parts[k];
}
// prepare: packed = reversed weights; then out = x * packed.
void reverse(void* const* b, int64_t begin, int64_t end) {
  const float* w = b[0];
  float* packed = b[1];
  for (int64_t i = begin; i < end; ++i) packed[i] = w[N - 1 - i];
}
void multiply(void* const* b, int64_t begin, int64_t end) {
  const float *x = b[0], *packed = b[1];
  float* out = b[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] * packed[i];
}
// M floats: out = reversed x, through scratch; one work item.
#define M 16384
void mirror(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  float *copy = b[1], *out = b[2];
  (void)begin, (void)end;
  for (int64_t i = 0; i < M; ++i) copy[i] = x[i];
  for (int64_t i = 0; i < M; ++i) out[i] = copy[M - 1 - i];
}
// out0 = x + 1, out1 = x - 1.
void plus_minus(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  float *plus = b[1], *minus = b[2];
  for (int64_t i = begin; i < end; ++i) plus[i] = x[i] + 1.0f, minus[i] = x[i] - 1.0f;
}
// Is the sum of x below 1000?
void below_limit(void* const* b, int64_t begin, int64_t end) {
  const float* x = b[0];
  uint8_t* out = b[1];
  float sum = 0.0f;
  (void)begin, (void)end;
  for (int i = 0; i < N; ++i) sum += x[i];
  out[0] = sum < 1000.0f;
}
// out = x + iteration.
void add_iteration(void* const* b, int64_t begin, int64_t end) {
  const int64_t* iteration = b[0];
  const float* x = b[1];
  float* out = b[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] + (float)*iteration;
}
