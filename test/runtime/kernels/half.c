// Half and bfloat16 conversions: without F16C these are calls into the compiler's run-time library.
#include <stdint.h>
void halves(void* const* b, int64_t begin, int64_t end) {
  const float* in = b[0];
  _Float16* half = b[1];
  __bf16* brain = b[2];
  float* back = b[3];
  for (int64_t i = begin; i < end; ++i) {
    half[i] = (_Float16)in[i];
    brain[i] = (__bf16)in[i];
    back[i] = (float)half[i];
  }
}
void doubles(void* const* b, int64_t begin, int64_t end) {
  const double* in = b[0];
  _Float16* half = b[1];
  __bf16* brain = b[2];
  for (int64_t i = begin; i < end; ++i) half[i] = (_Float16)in[i], brain[i] = (__bf16)in[i];
}
