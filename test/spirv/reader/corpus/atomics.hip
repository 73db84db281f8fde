// Atomic operations on the device's memory and on the workgroup's. A launch before each clears what it adds to.
#include <hip/hip_runtime.h>

template <class T>
__global__ void clear(T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0;
}
template __global__ void clear<int>(int*, int);
template __global__ void clear<float>(float*, int);
template __global__ void clear<double>(double*, int);
template __global__ void clear<long>(long*, int);

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KILN_OPERATOR("corpus", "histogram") KILN_OUTPUT(0, int32, dims(16)) KILN_LAUNCH(clear<int>, per_element(16), output0, 16) KILN_LAUNCH(histogram, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void histogram(const int* x, int* y, int n) {
  if (index() < n) atomicAdd(&y[x[index()] & 15], 1);
}

KILN_OPERATOR("corpus", "shared_histogram") KILN_OUTPUT(0, int32, dims(64)) KILN_LAUNCH(clear<int>, per_element(64), output0, 64) KILN_LAUNCH(shared_histogram, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void shared_histogram(const int* x, int* y) {
  __shared__ int bins[64];
  int t = threadIdx.x;
  if (t < 64) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[x[index()] & 63], 1);
  __syncthreads();
  if (t < 64) atomicAdd(&y[t], bins[t]);
}

KILN_OPERATOR("corpus", "add_float") KILN_OUTPUT(0, float32, dims(4)) KILN_LAUNCH(clear<float>, per_element(4), output0, 4) KILN_LAUNCH(add_float, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void add_float(const float* x, float* y, int n) {
  if (index() < n) atomicAdd(&y[index() & 3], x[index()]);
}

KILN_OPERATOR("corpus", "add_double") KILN_OUTPUT(0, float64, dims(4)) KILN_LAUNCH(clear<double>, per_element(4), output0, 4) KILN_LAUNCH(add_double, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void add_double(const double* x, double* y, int n) {
  if (index() < n) atomicAdd(&y[index() & 3], x[index()]);
}

KILN_OPERATOR("corpus", "add_long") KILN_OUTPUT(0, int64, dims(3)) KILN_LAUNCH(clear<long>, per_element(3), output0, 3) KILN_LAUNCH(add_long, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void add_long(const long* x, long* y, int n) {
  if (index() < n) atomicAdd(&y[index() % 3], x[index()]);
}

KILN_OPERATOR("corpus", "extremes") KILN_OUTPUT(0, int32, dims(4)) KILN_LAUNCH(clear<int>, per_element(4), output0, 4) KILN_LAUNCH(extremes, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void extremes(const int* x, int* y, int n) {
  if (index() >= n) return;
  int v = x[index()];
  atomicMin(&y[0], v);
  atomicMax(&y[1], v);
  atomicMax((unsigned*)&y[2], (unsigned)v * 2654435761u);
  atomicMin(&y[3], -v);
}

KILN_OPERATOR("corpus", "bits") KILN_OUTPUT(0, int32, dims(3)) KILN_LAUNCH(clear<int>, per_element(3), output0, 3) KILN_LAUNCH(bits, per_tile(1, 1, 1, 256, 1, 1), input0, output0)
__global__ void bits(const int* x, int* y) {
  __shared__ int all;
  if (threadIdx.x == 0) all = -1;
  __syncthreads();
  atomicOr(&y[0], 1 << (x[threadIdx.x] & 31));
  atomicXor(&y[1], x[threadIdx.x]);
  atomicAnd(&all, ~(x[threadIdx.x] & 0x40));
  __syncthreads();
  if (threadIdx.x == 0) y[2] = all;
}

KILN_OPERATOR("corpus", "float_extremes") KILN_OUTPUT(0, float32, dims(2)) KILN_LAUNCH(clear<float>, per_element(2), output0, 2) KILN_LAUNCH(float_extremes, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void float_extremes(const float* x, float* y, int n) {
  if (index() >= n) return;
  atomicMax(&y[0], x[index()]);
  atomicMin(&y[1], x[index()]);
}

// A number built by compare-and-swap: the sum of squares, and how often each bin changed.
KILN_OPERATOR("corpus", "swap_loop") KILN_OUTPUT(0, int32, dims(8)) KILN_LAUNCH(clear<int>, per_element(8), output0, 8) KILN_LAUNCH(swap_loop, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void swap_loop(const int* x, int* y, int n) {
  if (index() >= n) return;
  int* at = &y[index() % 8];
  int seen = *at, found;
  while ((found = atomicCAS(at, seen, seen + x[index()] * x[index()])) != seen) seen = found;
}

// Everybody draws a ticket; together they are a permutation.
KILN_OPERATOR("corpus", "tickets") KILN_OUTPUT(0, int32, same_as(input0)) KILN_SCRATCH(0, 4) KILN_LAUNCH(clear<int>, per_element(1), scratch0, 1) KILN_LAUNCH(clear<int>, per_element(elements(input0)), output0, elements(input0)) KILN_LAUNCH(tickets, per_element(elements(input0)), input0, scratch0, output0, elements(input0))
__global__ void tickets(const int* x, int* counter, int* y, int n) {
  if (index() >= n) return;
  int ticket = atomicAdd(counter, 1);
  atomicAdd(&y[ticket], 1);
}

KILN_OPERATOR("corpus", "wrap_counter") KILN_OUTPUT(0, int32, dims(2)) KILN_LAUNCH(clear<int>, per_element(2), output0, 2) KILN_LAUNCH(wrap_counter, per_element(elements(input0)), output0, elements(input0))
__global__ void wrap_counter(int* y, int n) {
  if (index() >= n) return;
  atomicInc((unsigned*)&y[0], 6);
  atomicDec((unsigned*)&y[1], 10);
}

KILN_OPERATOR("corpus", "exchange_slots") KILN_OUTPUT(0, int32, dims(1)) KILN_SCRATCH(0, 256) KILN_LAUNCH(clear<int>, per_element(64), scratch0, 64) KILN_LAUNCH(clear<int>, per_element(1), output0, 1) KILN_LAUNCH(exchange_slots, per_element(elements(input0)), input0, scratch0, output0, elements(input0)) KILN_LAUNCH(add_slots, per_tile(1, 1, 1, 64, 1, 1), scratch0, output0)
__global__ void exchange_slots(const int* x, int* slots, int* y, int n) {
  if (index() >= n) return;
  int old = atomicExch(&slots[index() % 64], x[index()]);
  atomicAdd(y, old);
}
__global__ void add_slots(const int* slots, int* y) { atomicAdd(y, slots[threadIdx.x]); }
