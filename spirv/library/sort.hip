// Rows sorted by value, equal values in their order: a network in shared memory for short rows, in the outputs themselves for long ones.
#include "workgroup.h"

constexpr int short_row = 2048;

template <class T>
__global__ void __launch_bounds__(1024) sort_short(const T* x, T* values, int64_t* order, int64_t n, int descending) {
  __shared__ T key[short_row];
  __shared__ int from[short_row];
  const T* row = x + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) key[i] = row[i], from[i] = i;
  __syncthreads();
  sort_workgroup((int)n,
    [&](int a, int b) {
      auto ka = ordered_key(key[a]), kb = ordered_key(key[b]);
      return ka == kb ? from[a] < from[b] : (ka < kb) != (descending != 0);
    },
    [&](int a, int b) {
      T k = key[a]; key[a] = key[b]; key[b] = k;
      int f = from[a]; from[a] = from[b]; from[b] = f;
    });
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[blockIdx.x * n + i] = key[i], order[blockIdx.x * n + i] = from[i];
}

template <class T>
__global__ void __launch_bounds__(1024) sort_long(const T* x, T* values, int64_t* order, int64_t n, int descending) {
  const T* row = x + blockIdx.x * n;
  T* key = values + blockIdx.x * n;
  int64_t* from = order + blockIdx.x * n;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) key[i] = row[i], from[i] = i;
  __threadfence_block();
  __syncthreads();
  sort_workgroup((int)n,
    [&](int a, int b) {
      auto ka = ordered_key(key[a]), kb = ordered_key(key[b]);
      return ka == kb ? from[a] < from[b] : (ka < kb) != (descending != 0);
    },
    [&](int a, int b) {
      T k = key[a]; key[a] = key[b]; key[b] = k;
      int64_t f = from[a]; from[a] = from[b]; from[b] = f;
    });
}

#define SORT(type, onnx)                                                                                              \
  template __global__ void sort_short<type>(const type*, type*, int64_t*, int64_t, int);                             \
  template __global__ void sort_long<type>(const type*, type*, int64_t*, int64_t, int);                              \
  KILN_OPERATOR("kiln", "Sort")                                                                                       \
  KILN_REQUIRE(rank(input0) >= 1 && dim(input0, -1) <= 1073741824)                                                    \
  KILN_INPUT(0, onnx)                                                                                                 \
  KILN_ATTRIBUTE(descending, 0)                                                                                       \
  KILN_OUTPUT(0, onnx, same_as(input0))                                                                               \
  KILN_OUTPUT(1, int64, same_as(input0))                                                                              \
  KILN_LAUNCH(sort_short<type>, per_task(dim(input0, -1) <= 2048 ? product(input0, 0, -1) : 0, dim(input0, -1) <= 256 ? 128 : 1024), \
              input0, output0, output1, dim(input0, -1), descending)                                                  \
  KILN_LAUNCH(sort_long<type>, per_task(dim(input0, -1) <= 2048 ? 0 : product(input0, 0, -1), 1024), input0, output0, output1, dim(input0, -1), descending)
SORT(float, float32)
SORT(int, int32)
SORT(long, int64)
