// Packing beside other code: objects of this file differ in one thing each (test/runtime/code_identity_test.cpp).
#include <math.h>
#include <stdint.h>
#ifndef MAIN
#define MAIN 2
#endif
#ifndef STEP
#define STEP 1
#endif
#ifndef NUMBER
#define NUMBER 4.0f
#endif
#ifndef PACK
#define PACK pack
#endif
static const float numbers[4] = {1.0f, 2.0f, NUMBER, 8.0f};
void before(void* const* b, int64_t begin, int64_t end) {
  float* out = b[0];
  for (int64_t i = begin; i < end; ++i)
    for (int k = 0; k < MAIN; ++k) out[i * MAIN + k] = expf(out[i]);
}
void PACK(void* const* b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = ((const float*)b[0])[i * STEP];
}
void pack_scaled(void* const* b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = ((const float*)b[0])[i] * numbers[i & 3];
}
void pack_calling(void* const* b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = erff(((const float*)b[0])[i]);
}
int64_t counter;
void pack_counting(void* const* b, int64_t begin, int64_t end) { ((int64_t*)b[1])[0] = counter += end - begin; }
#ifdef LOCAL
__attribute__((noinline)) static float local(float x) { return x * x + LOCAL; }
void after(void* const* b, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = local(((const float*)b[0])[i]);
}
#endif
