// What the library's kernels share: sums and scans over a workgroup, keys that order like the values, sorting networks. Any wave size, any
// workgroup of whole or broken waves up to 1024 threads.
#pragma once
#include <hip/hip_runtime.h>

constexpr int max_waves = 32;

// The sum of `value` over all threads before this one; `total` of all. Every thread calls it; `partial` is shared, of max_waves elements.
template <class T>
__device__ T scan_workgroup(T value, T* partial, T* total) {
  int thread = threadIdx.x, lane = thread % warpSize, wave = thread / warpSize, waves = (blockDim.x + warpSize - 1) / warpSize;
  T sum = value;
  for (int d = 1; d < warpSize; d *= 2) {
    T below = __shfl_up(sum, d);
    if (lane >= d) sum += below;
  }
  __syncthreads();  // `partial` may still be read by a call before
  if (lane == warpSize - 1 || thread == (int)blockDim.x - 1) partial[wave] = sum;
  __syncthreads();
  T before = 0, all = 0;
  for (int w = 0; w < waves; ++w) {
    if (w == wave) before = all;
    all += partial[w];
  }
  *total = all;
  return before + sum - value;
}

// Unsigned keys in the order of floats (both zeros equal, NaN above all) and of signed integers.
__device__ inline unsigned ordered_key(float x) {
  unsigned bits = x != x ? 0x7fffffffu : x == 0.0f ? 0u : __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline unsigned ordered_key(int x) { return (unsigned)x ^ 0x80000000u; }
__device__ inline unsigned long ordered_key(long x) { return (unsigned long)x ^ 0x8000000000000000ul; }

// Sorts n elements as sort_workgroup does, by a heap whose first element is the last in order.
template <class Before, class Swap>
__device__ void sort_alone(int n, Before before, Swap swap) {
  auto sink = [&](int at, int size) {
    for (int below; (below = 2 * at + 1) < size; at = below) {
      if (below + 1 < size && before(below, below + 1)) ++below;
      if (!before(at, below)) return;
      swap(at, below);
    }
  };
  for (int i = n / 2; i-- > 0;) sink(i, n);
  for (int size = n; size-- > 1;) {
    swap(0, size);
    sink(0, size);
  }
}

// A comparator network over n elements, whatever n: comparators that reach past the end would compare with infinity. All of a workgroup takes part;
// one thread alone has a shorter way. `before(a, b)`: whether element a stands before element b as they are; `swap(a, b)` exchanges them.
template <class Before, class Swap>
__device__ void sort_workgroup(int n, Before before, Swap swap) {
  if (blockDim.x == 1) return sort_alone(n, before, swap);
  int half = 1;
  while (half < n) half *= 2;
  half /= 2;
  for (int block = 1; block <= half; block *= 2) {
    for (int step = block; step > 0; step /= 2) {
      for (int i = threadIdx.x; i < half; i += blockDim.x) {
        int group = i / step, place = i % step, a = group * 2 * step + place;
        int b = step == block ? group * 2 * step + 2 * step - 1 - place : a + step;
        if (b < n && before(b, a)) swap(a, b);
      }
      __threadfence_block();
      __syncthreads();
    }
  }
}
