// HIP's atomic functions: relaxed, visible to the whole device; each returns what was there before (kiln_hip.h).
// Integer forms are single instructions; extremes of floats are compare-and-swap loops on their bits.
#pragma once

#define __KILN_AGENT__ __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT
#define __KILN_ATOMIC__(name, type, operation) \
  __KILN_DEVICE__ type name(type* at, type value) { return __hip_atomic_##operation(at, value, __KILN_AGENT__); }
#define __KILN_INTEGER_ATOMICS__(type)                                                                                 \
  __KILN_ATOMIC__(atomicAdd, type, fetch_add)                                                                          \
  __KILN_ATOMIC__(atomicMin, type, fetch_min)                                                                          \
  __KILN_ATOMIC__(atomicMax, type, fetch_max)                                                                          \
  __KILN_ATOMIC__(atomicAnd, type, fetch_and)                                                                          \
  __KILN_ATOMIC__(atomicOr, type, fetch_or)                                                                            \
  __KILN_ATOMIC__(atomicXor, type, fetch_xor)                                                                          \
  __KILN_ATOMIC__(atomicExch, type, exchange)                                                                          \
  __KILN_DEVICE__ type atomicSub(type* at, type value) { return __hip_atomic_fetch_add(at, (type)-value, __KILN_AGENT__); } \
  __KILN_DEVICE__ type atomicCAS(type* at, type expected, type desired) {                                              \
    __hip_atomic_compare_exchange_strong(at, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
    return expected;                                                                                                   \
  }
__KILN_INTEGER_ATOMICS__(int)
__KILN_INTEGER_ATOMICS__(unsigned)
__KILN_INTEGER_ATOMICS__(long)
__KILN_INTEGER_ATOMICS__(unsigned long)
__KILN_INTEGER_ATOMICS__(long long)
__KILN_INTEGER_ATOMICS__(unsigned long long)

__KILN_DEVICE__ float atomicAdd(float* at, float value) { return __hip_atomic_fetch_add(at, value, __KILN_AGENT__); }
__KILN_DEVICE__ double atomicAdd(double* at, double value) { return __hip_atomic_fetch_add(at, value, __KILN_AGENT__); }
__KILN_DEVICE__ float unsafeAtomicAdd(float* at, float value) { return atomicAdd(at, value); }
__KILN_DEVICE__ double unsafeAtomicAdd(double* at, double value) { return atomicAdd(at, value); }
__KILN_DEVICE__ float atomicSub(float* at, float value) { return atomicAdd(at, -value); }
__KILN_DEVICE__ double atomicSub(double* at, double value) { return atomicAdd(at, -value); }
__KILN_DEVICE__ float atomicExch(float* at, float value) { return __uint_as_float(atomicExch((unsigned*)at, __float_as_uint(value))); }
__KILN_DEVICE__ double atomicExch(double* at, double value) { return __longlong_as_double(atomicExch((long long*)at, __double_as_longlong(value))); }

// *at = function(*at), as one step.
template <class Bits, class T, class Function>
__KILN_DEVICE__ T __kiln_atomic_update(T* at, Function function) {
  Bits* word = (Bits*)at;
  Bits seen = __hip_atomic_load(word, __KILN_AGENT__);
  for (;;) {
    T before = __builtin_bit_cast(T, seen);
    Bits found = atomicCAS(word, seen, __builtin_bit_cast(Bits, function(before)));
    if (found == seen) return before;
    seen = found;
  }
}
__KILN_DEVICE__ float atomicMin(float* at, float value) {
  return __kiln_atomic_update<unsigned>(at, [=](float x) { return __builtin_fminf(x, value); });
}
__KILN_DEVICE__ float atomicMax(float* at, float value) {
  return __kiln_atomic_update<unsigned>(at, [=](float x) { return __builtin_fmaxf(x, value); });
}
__KILN_DEVICE__ double atomicMin(double* at, double value) {
  return __kiln_atomic_update<unsigned long>(at, [=](double x) { return __builtin_fmin(x, value); });
}
__KILN_DEVICE__ double atomicMax(double* at, double value) {
  return __kiln_atomic_update<unsigned long>(at, [=](double x) { return __builtin_fmax(x, value); });
}
__KILN_DEVICE__ unsigned atomicInc(unsigned* at, unsigned limit) {
  return __kiln_atomic_update<unsigned>(at, [=](unsigned x) { return x >= limit ? 0u : x + 1u; });
}
__KILN_DEVICE__ unsigned atomicDec(unsigned* at, unsigned limit) {
  return __kiln_atomic_update<unsigned>(at, [=](unsigned x) { return x == 0u || x > limit ? limit : x - 1u; });
}
