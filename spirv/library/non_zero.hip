// Flat positions of what is not zero, in order, and how many: counts of tiles, their sums before each, then the positions. Places past the count hold -1.
#include "workgroup.h"

constexpr int tile = 1024;

template <class T>
__global__ void __launch_bounds__(256) count_tiles(const T* x, int* counts, int64_t n) {
  __shared__ int partial[max_waves];
  int own = 0, total;
  for (int e = threadIdx.x; e < tile; e += blockDim.x) {
    int64_t i = (int64_t)blockIdx.x * tile + e;
    own += i < n && x[i] != T(0);
  }
  scan_workgroup(own, partial, &total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(1024) sum_tiles(int* counts, int64_t* count, int64_t tiles) {
  __shared__ int partial[max_waves];
  int carried = 0;
  for (int64_t base = 0; base < tiles; base += blockDim.x) {
    int64_t i = base + threadIdx.x;
    int total, own = i < tiles ? counts[i] : 0, before = scan_workgroup(own, partial, &total);
    if (i < tiles) counts[i] = carried + before;
    carried += total;
  }
  if (threadIdx.x == 0) count[0] = carried;
}

template <class T>
__global__ void __launch_bounds__(256) place_tiles(const T* x, const int* counts, const int64_t* count, int64_t* places, int64_t n) {
  __shared__ int partial[max_waves];
  int carried = counts[blockIdx.x];
  for (int e = 0; e < tile; e += blockDim.x) {
    int64_t i = (int64_t)blockIdx.x * tile + e + threadIdx.x;
    int total, found = i < n && x[i] != T(0), before = scan_workgroup(found, partial, &total);
    if (found) places[carried + before] = i;
    carried += total;
    if (i < n && i >= count[0]) places[i] = -1;
  }
}

#define NON_ZERO(type, onnx)                                                                                             \
  template __global__ void count_tiles<type>(const type*, int*, int64_t);                                               \
  template __global__ void place_tiles<type>(const type*, const int*, const int64_t*, int64_t*, int64_t);               \
  KILN_OPERATOR("kiln", "NonZero")                                                                                       \
  KILN_REQUIRE(elements(input0) <= 2147483647)                                                                           \
  KILN_INPUT(0, onnx)                                                                                                    \
  KILN_OUTPUT(0, int64, dims(elements(input0)))                                                                          \
  KILN_OUTPUT(1, int64, dims(1))                                                                                         \
  KILN_SCRATCH(0, 4 * ceil_div(elements(input0), 1024))                                                                  \
  KILN_LAUNCH(count_tiles<type>, per_task(ceil_div(elements(input0), 1024), 256), input0, scratch0, elements(input0))    \
  KILN_LAUNCH(sum_tiles, per_task(1, 1024), scratch0, output1, ceil_div(elements(input0), 1024))                          \
  KILN_LAUNCH(place_tiles<type>, per_task(ceil_div(elements(input0), 1024), 256), input0, scratch0, output1, output0, elements(input0))
NON_ZERO(float, float32)
NON_ZERO(int, int32)
NON_ZERO(long, int64)
NON_ZERO(unsigned char, bool)
