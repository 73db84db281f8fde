// Every kind of reference that code generators make: external functions, read-only and writable data, tables of pointers, a large
// uninitialized array, calls inside the object. The host kernel ABI of ir/native_kernel.hpp.
#include <math.h>
#include <stdint.h>
#include <string.h>

static const float table[8] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f, 32.0f, 64.0f, 128.0f};
int32_t call_count = 7;               // .data
static float history[300000];         // .bss
const double halves[3] = {0.5, 1.5, 2.5};

__attribute__((noinline)) static float square(float x) { return x * x; }
__attribute__((noinline)) static float cube(float x) { return x * x * x; }
static float (*const volatile functions[2])(float) = {square, cube};  // .data.rel.ro
const float* volatile table_end = table + 8;                   // .data with R_X86_64_64
__attribute__((noinline)) float scaled(float x) { return x * table[3]; }  // a global called through PLT32

void call_expf(void* const* b, int64_t begin, int64_t end) {
  const float* in = b[0];
  float* out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = expf(in[i]);
}
void call_pow_erf(void* const* b, int64_t begin, int64_t end) {
  const double* in = b[0];
  double* out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = pow(in[i], 1.5) + erf(in[i]);
}
void copy_bytes(void* const* b, int64_t begin, int64_t end) { memcpy((char*)b[1] + begin, (const char*)b[0] + begin, (size_t)(end - begin)); }
void fill_bytes(void* const* b, int64_t begin, int64_t end) {
  memset((char*)b[0] + begin, 0x5A, (size_t)(end - begin));
}
void use_tables(void* const* b, int64_t begin, int64_t end) {
  float* out = b[0];
  for (int64_t i = begin; i < end; ++i) out[i] = functions[i % 2](table[i % 8]) + table_end[-1 - i % 8] + (float)halves[i % 3] + scaled((float)i);
}
void use_state(void* const* b, int64_t begin, int64_t end) {
  int32_t* out = b[0];
  call_count += 5;
  for (int i = 0; i < 300000; ++i) history[i] += 1.0f;
  out[0] = call_count;
  out[1] = (int32_t)history[0] + (int32_t)history[299999];
}
typedef float (*unary)(float);
unary volatile chosen;
void address_of_external(void* const* b, int64_t begin, int64_t end) {
  chosen = tanhf;  // GOTPCREL of an external function
  float* out = b[0];
  for (int64_t i = begin; i < end; ++i) out[i] = chosen(out[i]);
}
