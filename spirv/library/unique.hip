// The distinct values of a tensor, sorted; where each first stands, how often it occurs, and which of them each element is. One workgroup.
#include "workgroup.h"

template <class T>
__global__ void __launch_bounds__(1024) unique(const T* x, T* values, int64_t* first, int64_t* inverse, int64_t* counts, int64_t* count, T* key, int64_t* from, int64_t n) {
  __shared__ int partial[max_waves];
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) key[i] = x[i], from[i] = i, counts[i] = 0;
  __threadfence_block();
  __syncthreads();
  sort_workgroup((int)n,
    [&](int a, int b) {
      auto ka = ordered_key(key[a]), kb = ordered_key(key[b]);
      return ka == kb ? from[a] < from[b] : ka < kb;
    },
    [&](int a, int b) {
      T k = key[a]; key[a] = key[b]; key[b] = k;
      int64_t f = from[a]; from[a] = from[b]; from[b] = f;
    });
  int carried = 0;
  for (int64_t base = 0; base < n; base += blockDim.x) {
    int64_t i = base + threadIdx.x;
    int total, fresh = i < n && (i == 0 || ordered_key(key[i]) != ordered_key(key[i - 1]));
    int before = scan_workgroup(fresh, partial, &total);
    if (i < n) {
      int64_t which = carried + before + fresh - 1;
      inverse[from[i]] = which;
      if (fresh) values[which] = key[i], first[which] = from[i];
      atomicAdd(&counts[which], 1l);
    }
    carried += total;
  }
  for (int64_t i = carried + threadIdx.x; i < n; i += blockDim.x) values[i] = T(0), first[i] = -1;
  if (threadIdx.x == 0) count[0] = carried;
}

#define UNIQUE(type, onnx, bytes)                                                                                                              \
  template __global__ void unique<type>(const type*, type*, int64_t*, int64_t*, int64_t*, int64_t*, type*, int64_t*, int64_t);               \
  KILN_OPERATOR("kiln", "Unique")                                                                                                              \
  KILN_REQUIRE(elements(input0) <= 1073741824)                                                                                                 \
  KILN_INPUT(0, onnx)                                                                                                                          \
  KILN_OUTPUT(0, onnx, dims(elements(input0)))                                                                                                 \
  KILN_OUTPUT(1, int64, dims(elements(input0)))                                                                                                \
  KILN_OUTPUT(2, int64, dims(elements(input0)))                                                                                                \
  KILN_OUTPUT(3, int64, dims(elements(input0)))                                                                                                \
  KILN_OUTPUT(4, int64, dims(1))                                                                                                               \
  KILN_SCRATCH(0, bytes * elements(input0))                                                                                                    \
  KILN_SCRATCH(1, 8 * elements(input0))                                                                                                        \
  KILN_LAUNCH(unique<type>, per_task(1, 1024), input0, output0, output1, output2, output3, output4, scratch0, scratch1, elements(input0))
UNIQUE(float, float32, 4)
UNIQUE(int, int32, 4)
UNIQUE(long, int64, 8)
