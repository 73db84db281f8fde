// HIP's names for nvcc, as far as the library's kernels use them: spirv_vs_nvcc.py compiles the same sources with it.
#pragma once
#include <cmath>
#include <cstdint>

#define __shfl_up(value, lanes) __shfl_up_sync(0xffffffffu, value, lanes)
#define __shfl_down(value, lanes) __shfl_down_sync(0xffffffffu, value, lanes)
#define __shfl_xor(value, lanes) __shfl_xor_sync(0xffffffffu, value, lanes)
#define KILN_OPERATOR(...)
#define KILN_INPUT(...)
#define KILN_REQUIRE(...)
#define KILN_ATTRIBUTE(...)
#define KILN_OUTPUT(...)
#define KILN_SCRATCH(...)
#define KILN_LAUNCH(...)
#define KILN_SHARED(...)

template <class T>
struct __kiln_word { using type = T; };
template <>
struct __kiln_word<unsigned long> { using type = unsigned long long; };

template <class Bits, class T, class Function>
__device__ T __kiln_atomic_update(T* at, Function function) {
  using word = typename __kiln_word<Bits>::type;
  word* place = reinterpret_cast<word*>(at);
  word seen = *place;
  for (;;) {
    T before, after;
    memcpy(&before, &seen, sizeof before);
    after = function(before);
    word next;
    memcpy(&next, &after, sizeof next);
    word found = atomicCAS(place, seen, next);
    if (found == seen) return before;
    seen = found;
  }
}
inline __device__ float atomicMin(float* at, float value) { return __kiln_atomic_update<unsigned>(at, [=](float x) { return fminf(x, value); }); }
inline __device__ float atomicMax(float* at, float value) { return __kiln_atomic_update<unsigned>(at, [=](float x) { return fmaxf(x, value); }); }
inline __device__ long atomicAdd(long* at, long value) { return (long)atomicAdd((unsigned long long*)at, (unsigned long long)value); }
inline __device__ long atomicMin(long* at, long value) { return (long)atomicMin((long long*)at, (long long)value); }
inline __device__ long atomicMax(long* at, long value) { return (long)atomicMax((long long*)at, (long long)value); }
