// The k largest (or smallest) of each row, sorted, equal values in their order: radix selection of the k-th key, then a network over k.
#include "workgroup.h"

constexpr int most = 2048, bins = 256;

template <class T>
__global__ void __launch_bounds__(1024) top_k(const T* x, T* values, int64_t* order, int64_t n, int k, int largest) {
  __shared__ unsigned histogram[bins], key[most];
  __shared__ int from[most], partial[max_waves];
  __shared__ unsigned threshold;
  __shared__ int left, taken;
  const T* row = x + blockIdx.x * n;
  auto key_of = [&](int64_t i) {  // smaller is better
    unsigned u = ordered_key(row[i]);
    return largest ? ~u : u;
  };
  if (threadIdx.x == 0) threshold = 0, left = k, taken = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < bins; i += blockDim.x) histogram[i] = 0;
    __syncthreads();
    unsigned high = shift == 24 ? 0u : ~0u << (shift + 8), prefix = threshold;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      unsigned u = key_of(i);
      if ((u & high) == prefix) atomicAdd(&histogram[(u >> shift) & 255u], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int bin = 0;
      while (bin < bins - 1 && (int)histogram[bin] < left) left -= histogram[bin++];
      threshold |= (unsigned)bin << shift;
    }
    __syncthreads();
  }
  // All that are better than the k-th key, in any order; of those equal to it the first `left`.
  unsigned last = threshold;
  int equal = left, seen = 0;
  for (int64_t base = 0; base < n; base += blockDim.x) {
    int64_t i = base + threadIdx.x;
    unsigned u = i < n ? key_of(i) : ~0u;
    if (i < n && u < last) {
      int at = atomicAdd(&taken, 1);
      key[at] = u;
      from[at] = (int)i;
    }
    int total, before = seen;
    bool same = i < n && u == last;
    if (seen < equal) {  // the same for all threads
      before += scan_workgroup((int)same, partial, &total);
      seen += total;
    }
    if (same && before < equal) {
      key[k - equal + before] = u;
      from[k - equal + before] = (int)i;
    }
  }
  __syncthreads();
  sort_workgroup(k, [&](int a, int b) { return key[a] == key[b] ? from[a] < from[b] : key[a] < key[b]; },
    [&](int a, int b) {
      unsigned u = key[a]; key[a] = key[b]; key[b] = u;
      int f = from[a]; from[a] = from[b]; from[b] = f;
    });
  for (int i = threadIdx.x; i < k; i += blockDim.x) {
    values[blockIdx.x * (int64_t)k + i] = row[from[i]];
    order[blockIdx.x * (int64_t)k + i] = from[i];
  }
}

#define TOP_K(type, onnx)                                                                              \
  template __global__ void top_k<type>(const type*, type*, int64_t*, int64_t, int, int);              \
  KILN_OPERATOR("kiln", "TopK")                                                                        \
  KILN_INPUT(0, onnx)                                                                                  \
  KILN_REQUIRE(rank(input0) >= 1 && dim(input0, -1) <= 2147483647)                                     \
  KILN_ATTRIBUTE(k, 1)                                                                                 \
  KILN_ATTRIBUTE(largest, 1)                                                                           \
  KILN_OUTPUT(0, onnx, with_dim(input0, -1, k))                                                        \
  KILN_OUTPUT(1, int64, with_dim(input0, -1, k))                                                       \
  KILN_LAUNCH(top_k<type>, per_task(product(input0, 0, -1), k <= 2048 && k <= dim(input0, -1) ? (dim(input0, -1) <= 512 ? 128 : 1024) : 0), input0, output0, output1, dim(input0, -1), k, largest)
TOP_K(float, float32)
TOP_K(int, int32)
