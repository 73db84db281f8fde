// Workgroups that meet at barriers: in loops, in branches that all take, in functions, with values and arrays that live across them.
#include <hip/hip_runtime.h>

KILN_OPERATOR("corpus", "reverse") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(reverse, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void reverse(const float* x, float* y) {
  __shared__ float tile[256];
  int t = threadIdx.x, base = blockIdx.x * 256;
  tile[t] = x[base + t];
  __syncthreads();
  y[base + t] = tile[255 - t];
}

KILN_OPERATOR("corpus", "tree_sum") KILN_OUTPUT(0, int32, dims(elements(input0) / 128)) KILN_LAUNCH(tree_sum, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0) KILN_SHARED(512)
__global__ void tree_sum(const int* x, int* y) {
  extern __shared__ int part[];
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = part[0];
}

KILN_OPERATOR("corpus", "prefix_sum") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(prefix_sum, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void prefix_sum(const int* x, int* y) {
  __shared__ int part[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t, mine = x[i];
  part[t] = mine;
  for (int d = 1; d < 256; d *= 2) {
    __syncthreads();
    int add = t >= d ? part[t - d] : 0;
    __syncthreads();
    part[t] += add;
  }
  y[i] = part[t] - mine;
}

// Right for any number of threads; a CPU has one.
KILN_OPERATOR("corpus", "sum_of_tasks") KILN_OUTPUT(0, int32, dims(ceil_div(elements(input0), 100))) KILN_LAUNCH(sum_of_tasks, per_task(ceil_div(elements(input0), 100), 96), input0, output0, elements(input0))
__global__ void sum_of_tasks(const int* x, int* y, int n) {
  __shared__ int part[32];
  int first = blockIdx.x * 100, last = min(first + 100, n), own = 0, lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize;
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) own += x[i];
  for (int d = 1; d < warpSize; d *= 2) {
    int below = __shfl_up(own, d);
    if (lane >= d) own += below;
  }
  if (lane == warpSize - 1 || threadIdx.x == blockDim.x - 1) part[wave] = own;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w * warpSize < blockDim.x; ++w) sum += part[w];
  if (__all(sum == part[0]) == (sum == part[0]) && threadIdx.x == 0) y[blockIdx.x] = sum;
}

KILN_OPERATOR("corpus", "barrier_in_branch") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(barrier_in_branch, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void barrier_in_branch(const int* x, int* y) {
  __shared__ int tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t] = x[i];
  if (blockIdx.x % 2) {
    __syncthreads();
    y[i] = tile[t ^ 1] + 1;
  } else {
    int v = tile[t] * 2;
    __syncthreads();
    tile[63 - t] = v;
    __syncthreads();
    y[i] = tile[t];
  }
}

// The number of steps comes from memory, equal for all.
KILN_OPERATOR("corpus", "relax") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(relax, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, input1, output0)
__global__ void relax(const float* x, const int* steps, float* y) {
  __shared__ float line[2][130];
  int t = threadIdx.x, i = blockIdx.x * 128 + t, now = 0;
  line[0][t + 1] = x[i];
  if (t < 2) line[0][t * 129] = line[1][t * 129] = 0;
  __syncthreads();
  for (int s = 0; s < steps[blockIdx.x]; ++s) {
    line[1 - now][t + 1] = (line[now][t] + line[now][t + 2]) * 0.5f;
    now = 1 - now;
    __syncthreads();
  }
  y[i] = line[now][t + 1];
}

KILN_OPERATOR("corpus", "nested_barriers") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(nested_barriers, per_tile(elements(input0) / 96, 1, 1, 96, 1, 1), input0, output0)
__global__ void nested_barriers(const int* x, int* y) {
  __shared__ int ring[96];
  int t = threadIdx.x, i = blockIdx.x * 96 + t, sum = 0;
  ring[t] = x[i];
  for (int a = 0; a < 3; ++a) {
    int seen = 0;
    for (int b = 0; b <= a; ++b) {
      __syncthreads();
      int v = ring[(t + a + b) % 96];
      __syncthreads();
      ring[t] = v + b;
      seen += v;
    }
    sum = sum * 3 + seen;
  }
  y[i] = sum;
}

// All leave together, when the flag says so.
KILN_OPERATOR("corpus", "until_settled") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(until_settled, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void until_settled(const int* x, int* y) {
  __shared__ int changed;
  int t = threadIdx.x, i = blockIdx.x * 64 + t, v = x[i] % 100, rounds = 0;
  while (true) {
    if (t == 0) changed = 0;
    __syncthreads();
    if (v > 3) {
      v -= 1 + t % 3;
      changed = 1;
    }
    __syncthreads();
    ++rounds;
    if (!changed) break;
    __syncthreads();
  }
  y[i] = rounds * 1000 + v;
}

KILN_OPERATOR("corpus", "private_array") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(private_array, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void private_array(const int* x, int* y) {
  __shared__ int tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t, mine[8];
  tile[t] = x[i] & 7;
  for (int k = 0; k < 8; ++k) mine[k] = k * t;
  __syncthreads();
  for (int k = 0; k < 8; ++k) mine[tile[(t + k) % 64]] += k + 1;
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < 8; ++k) sum = sum * 5 + mine[tile[(t * 3 + k) % 64]];
  y[i] = sum;
}

KILN_OPERATOR("corpus", "transpose_tile") KILN_OUTPUT(0, float32, dims(dim(input0, 1), dim(input0, 0))) KILN_LAUNCH(transpose_tile, per_tile(dim(input0, 1) / 16, dim(input0, 0) / 16, 1, 16, 16, 1), input0, output0, dim(input0, 0), dim(input0, 1))
__global__ void transpose_tile(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[16][17];
  int c = blockIdx.x * 16, r = blockIdx.y * 16;
  tile[threadIdx.y][threadIdx.x] = x[(r + threadIdx.y) * columns + c + threadIdx.x];
  __syncthreads();
  y[(c + threadIdx.y) * rows + r + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

KILN_OPERATOR("corpus", "bitonic_sort") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(bitonic_sort, per_tile(elements(input0) / 256, 1, 1, 128, 1, 1), input0, output0)
__global__ void bitonic_sort(const int* x, int* y) {
  __shared__ int v[256];
  int t = threadIdx.x, base = blockIdx.x * 256;
  v[t] = x[base + t];
  v[t + 128] = x[base + t + 128];
  for (int size = 2; size <= 256; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      int low = 2 * t - (t & (stride - 1)), high = low + stride;
      bool up = (low & size) == 0;
      int a = v[low], b = v[high];
      if ((a > b) == up) {
        v[low] = b;
        v[high] = a;
      }
    }
  __syncthreads();
  y[base + t] = v[t];
  y[base + t + 128] = v[t + 128];
}

KILN_OPERATOR("corpus", "matmul_tile") KILN_OUTPUT(0, float32, dims(dim(input0, 0), dim(input1, 1))) KILN_LAUNCH(matmul_tile, per_tile(dim(input1, 1) / 16, dim(input0, 0) / 16, 1, 16, 16, 1), input0, input1, output0, dim(input0, 1), dim(input1, 1))
__global__ void matmul_tile(const float* a, const float* b, float* c, int depth, int columns) {
  __shared__ float left[16][16], right[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < depth; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * depth + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * columns + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum = fmaf(left[threadIdx.y][j], right[j][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * columns + column] = sum;
}

__device__ __noinline__ int rotate_through(int* tile, int t, int v) {
  __syncthreads();
  tile[t] = v;
  __syncthreads();
  return tile[(t + 1) % 64];
}
KILN_OPERATOR("corpus", "barrier_in_function") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(barrier_in_function, per_tile(elements(input0) / 64, 1, 1, 64, 1, 1), input0, output0)
__global__ void barrier_in_function(const int* x, int* y) {
  __shared__ int tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t, v = x[i];
  for (int k = 0; k < 5; ++k) v += rotate_through(tile, t, v) * (k + 1);
  y[i] = v;
}
