// Random numbers: Philox 4x32 with 10 rounds (Salmon and others, 2011), counted by element, so that a seed gives the same numbers on every target.
#include "workgroup.h"

struct philox_state { unsigned word[4]; };
__device__ inline philox_state philox(unsigned long seed, unsigned long counter) {
  philox_state c = {{(unsigned)counter, (unsigned)(counter >> 32), 0u, 0u}};
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    unsigned long a = 0xd2511f53ul * c.word[0], b = 0xcd9e8d57ul * c.word[2];
    c = {{(unsigned)(b >> 32) ^ c.word[1] ^ k0, (unsigned)b, (unsigned)(a >> 32) ^ c.word[3] ^ k1, (unsigned)a}};
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return c;
}
__device__ inline float unit(unsigned word) { return (float)(word >> 8) * 0x1p-24f; }  // [0, 1)

__global__ void random_uniform(float* y, int64_t n, int64_t seed, float low, float high) {
  int64_t quad = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (quad * 4 >= n) return;
  philox_state r = philox((unsigned long)seed, (unsigned long)quad);
  for (int k = 0; k < 4; ++k)
    if (quad * 4 + k < n) y[quad * 4 + k] = fmaf(unit(r.word[k]), high - low, low);
}

__global__ void random_normal(float* y, int64_t n, int64_t seed, float mean, float scale) {
  int64_t quad = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (quad * 4 >= n) return;
  philox_state r = philox((unsigned long)seed, (unsigned long)quad);
  for (int k = 0; k < 4; k += 2) {  // Box and Muller
    float radius = sqrtf(-2.0f * logf(1.0f - unit(r.word[k]))), s, c;
    sincosf(6.28318531f * unit(r.word[k + 1]), &s, &c);
    if (quad * 4 + k < n) y[quad * 4 + k] = fmaf(radius * c, scale, mean);
    if (quad * 4 + k + 1 < n) y[quad * 4 + k + 1] = fmaf(radius * s, scale, mean);
  }
}

#define RANDOM(name, kernel, first, first_value, second, second_value)                                     \
  KILN_OPERATOR("", "Random" name)                                                                         \
  KILN_ATTRIBUTE(shape, list())                                                                            \
  KILN_ATTRIBUTE(dtype, 1)                                                                                 \
  KILN_ATTRIBUTE(seed, 0.0)                                                                                \
  KILN_ATTRIBUTE(first, first_value)                                                                       \
  KILN_ATTRIBUTE(second, second_value)                                                                     \
  KILN_REQUIRE(dtype == 1)                                                                                 \
  KILN_OUTPUT(0, float32, list(shape))                                                                     \
  KILN_LAUNCH(kernel, per_element(ceil_div(elements(output0), 4)), output0, elements(output0), floor(seed), first, second) \
  KILN_OPERATOR("", "Random" name "Like")                                                                  \
  KILN_ATTRIBUTE(dtype, 1)                                                                                 \
  KILN_ATTRIBUTE(seed, 0.0)                                                                                \
  KILN_ATTRIBUTE(first, first_value)                                                                       \
  KILN_ATTRIBUTE(second, second_value)                                                                     \
  KILN_REQUIRE(dtype == 1)                                                                                 \
  KILN_OUTPUT(0, float32, same_as(input0))                                                                 \
  KILN_LAUNCH(kernel, per_element(ceil_div(elements(output0), 4)), output0, elements(output0), floor(seed), first, second)
RANDOM("Uniform", random_uniform, low, 0.0, high, 1.0)
RANDOM("Normal", random_normal, mean, 0.0, scale, 1.0)
