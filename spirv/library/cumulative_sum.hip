// Sums along one axis, inclusive or exclusive, from either end: one workgroup for each line, a scan for each part of it.
#include "workgroup.h"

constexpr int each = 4;  // elements of one thread in a part

template <class T>
__global__ void __launch_bounds__(256) cumulative_sum(const T* x, T* y, int64_t n, int64_t inner, int exclusive, int reverse) {
  __shared__ T partial[max_waves];
  int64_t line = (blockIdx.x / inner) * n * inner + blockIdx.x % inner;
  T carried = 0;
  for (int64_t base = 0; base < n; base += blockDim.x * each) {
    T own[each], sum = 0;
    int64_t first = base + (int64_t)threadIdx.x * each;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      int64_t i = first + e;
      own[e] = i < n ? x[line + (reverse ? n - 1 - i : i) * inner] : T(0);
      sum += own[e];
    }
    T total, running = carried + scan_workgroup(sum, partial, &total);
#pragma unroll
    for (int e = 0; e < each; ++e) {
      int64_t i = first + e;
      T next = running + own[e];
      if (i < n) y[line + (reverse ? n - 1 - i : i) * inner] = exclusive ? running : next;
      running = next;
    }
    carried += total;
  }
}

#define CUMULATIVE_SUM(type, onnx)                                                                     \
  template __global__ void cumulative_sum<type>(const type*, type*, int64_t, int64_t, int, int);      \
  KILN_OPERATOR("kiln", "CumulativeSum")                                                               \
  KILN_INPUT(0, onnx)                                                                                  \
  KILN_ATTRIBUTE(axis, -1)                                                                             \
  KILN_ATTRIBUTE(exclusive, 0)                                                                         \
  KILN_ATTRIBUTE(reverse, 0)                                                                           \
  KILN_OUTPUT(0, onnx, same_as(input0))                                                                \
  KILN_LAUNCH(cumulative_sum<type>, per_task(elements(input0) / max(dim(input0, axis), 1), 256), input0, output0, dim(input0, axis), \
              axis == -1 ? 1 : product(input0, axis + 1, rank(input0)), exclusive, reverse)
CUMULATIVE_SUM(float, float32)
CUMULATIVE_SUM(double, float64)
CUMULATIVE_SUM(int, int32)
CUMULATIVE_SUM(long, int64)
