// The memory of a workgroup: static and dynamic, of several types.
#include <hip/hip_runtime.h>

KILN_OPERATOR("corpus", "dynamic_two") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(dynamic_two, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0) KILN_SHARED(64 * 4 + 64 * 8)
__global__ void dynamic_two(const float* x, float* y) {
  extern __shared__ double raw[];
  double* wide = raw;
  float* narrow = (float*)(raw + 64);
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  wide[t] = x[i] * 3.0;
  narrow[63 - t] = x[i];
  __syncthreads();
  y[i] = (float)(wide[63 - t] + narrow[t]);
}

KILN_OPERATOR("corpus", "static_and_dynamic") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(static_and_dynamic, per_tile(elements(input0) / 32, 1, 1, 32, 1, 1), input0, output0) KILN_SHARED(dim(input0, 0) / 8)
__global__ void static_and_dynamic(const int* x, int* y) {
  __shared__ int fixed[33];
  extern __shared__ int open[];
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  fixed[t + 1] = x[i];
  if (t == 0) fixed[0] = 1000;
  open[t] = i;
  __syncthreads();
  y[i] = fixed[t] + open[31 - t];
}

struct cell {
  float weight;
  short tag;
  unsigned char flag;
};
KILN_OPERATOR("corpus", "shared_structs") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(shared_structs, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void shared_structs(const float* x, float* y) {
  __shared__ cell cells[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  cells[t].weight = x[i];
  cells[t].tag = (short)(t * 3 - 50);
  cells[t].flag = (unsigned char)(t * 7);
  __syncthreads();
  const cell& other = cells[(t * 5 + 1) % 64];
  y[i] = other.weight + other.tag + other.flag;
}

KILN_OPERATOR("corpus", "shared_counter") KILN_OUTPUT(0, int32, dims(elements(input0) / 256)) KILN_LAUNCH(shared_counter, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void shared_counter(const float* x, int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (x[blockIdx.x * 256 + threadIdx.x] > 0) atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = count;
}

KILN_OPERATOR("corpus", "shared_bytes") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(shared_bytes, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void shared_bytes(const int* x, int* y) {
  __shared__ unsigned char bytes[256];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  for (int k = 0; k < 4; ++k) bytes[k * 64 + t] = (unsigned char)(x[i] >> (8 * k));
  __syncthreads();
  int v = 0;
  for (int k = 0; k < 4; ++k) v = v << 8 | bytes[k * 64 + (t ^ 3)];
  y[i] = v;
}

// A pointer that may be to the workgroup's memory or to the device's.
KILN_OPERATOR("corpus", "generic_pointer") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(generic_pointer, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void generic_pointer(const float* x, float* y) {
  __shared__ float tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t] = x[i] * 10;
  __syncthreads();
  const float* from = x[i] > 0 ? tile : x + blockIdx.x * 64;
  y[i] = from[63 - t];
}
