// Values that go from lane to lane. Results do not depend on how many lanes a wave has: groups of 32 lanes or fewer, or data that repeats.
#include <hip/hip_runtime.h>

__device__ int index() { return blockIdx.x * 128 + threadIdx.x; }

KILN_OPERATOR("corpus", "shuffle_broadcast") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(shuffle_broadcast, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_broadcast(const float* x, float* y) { y[index()] = __shfl(x[index()], 5, 32) + __shfl(x[index()], threadIdx.x * 3, 32); }

KILN_OPERATOR("corpus", "shuffle_scan") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(shuffle_scan, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_scan(const int* x, int* y) {
  int v = x[index()], lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up(v, d, 32);
    if (lane >= d) v += other;
  }
  y[index()] = v;
}

KILN_OPERATOR("corpus", "shuffle_reduce") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(shuffle_reduce, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_reduce(const int* x, int* y) {
  int v = x[index()];
  for (int d = 8; d > 0; d /= 2) v += __shfl_down(v, d, 16);
  y[index()] = v;
}

KILN_OPERATOR("corpus", "shuffle_butterfly") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(shuffle_butterfly, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_butterfly(const float* x, float* y) {
  float v = x[index()];
  for (int d = 4; d > 0; d /= 2) v = fmaxf(v, __shfl_xor(v, d, 8));
  y[index()] = v;
}

KILN_OPERATOR("corpus", "shuffle_double") KILN_OUTPUT(0, float64, same_as(input0)) KILN_LAUNCH(shuffle_double, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_double(const double* x, double* y) { y[index()] = __shfl_xor(x[index()], 9, 32) * 2; }

KILN_OPERATOR("corpus", "shuffle_long") KILN_OUTPUT(0, int64, same_as(input0)) KILN_LAUNCH(shuffle_long, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_long(const long* x, long* y) { y[index()] = __shfl_down(x[index()], 3, 32) - 1; }

KILN_OPERATOR("corpus", "shuffle_half") KILN_OUTPUT(0, float16, same_as(input0)) KILN_LAUNCH(shuffle_half, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_half(const __half* x, __half* y) { y[index()] = __shfl_xor(x[index()], 1, 32); }

// Waves take different branches, and loops of different lengths.
KILN_OPERATOR("corpus", "shuffle_in_branch") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(shuffle_in_branch, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void shuffle_in_branch(const int* x, int* y) {
  int v = x[index()], wave = threadIdx.x / 64;
  if (wave) {
    for (int k = 0; k < 3 + (int)blockIdx.x; ++k) v = __shfl(v, threadIdx.x + 1, 32) + k;
  } else {
    v = __shfl_xor(v, 3, 32) * 5;
  }
  y[index()] = v;
}

// The usual reduction of a workgroup, written for any size of wave.
KILN_OPERATOR("corpus", "workgroup_sum") KILN_OUTPUT(0, int32, dims(elements(input0) / 256)) KILN_LAUNCH(workgroup_sum, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void workgroup_sum(const int* x, int* y) {
  __shared__ int parts[32];
  int t = threadIdx.x, v = x[blockIdx.x * 256 + t];
  for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down(v, d);
  if (t % warpSize == 0) parts[t / warpSize] = v;
  __syncthreads();
  if (t < warpSize) {
    v = t < 256 / warpSize ? parts[t] : 0;
    for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down(v, d);
    if (t == 0) y[blockIdx.x] = v;
  }
}

KILN_OPERATOR("corpus", "lane_numbers") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(lane_numbers, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void lane_numbers(const int* x, int* y) { y[index()] = x[index()] + (int)(__lane_id() % 32) + ((int)__lane_id() < warpSize) + (128 % warpSize); }

KILN_OPERATOR("corpus", "ballot_bits") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(ballot_bits, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void ballot_bits(const int* x, int* y) {
  unsigned long long all = __ballot(x[index()] > 50);
  y[index()] = (int)(unsigned)(all >> (__lane_id() & ~31u));
}

KILN_OPERATOR("corpus", "ballot_count") KILN_OUTPUT(0, int32, dims(elements(input0) / 128)) KILN_LAUNCH(ballot_count, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void ballot_count(const int* x, int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  unsigned long long all = __ballot(x[index()] % 3 == 0);
  if (__lane_id() == 0) atomicAdd(&count, __popcll(all));
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = count;
}

// The data repeats after 32 elements.
KILN_OPERATOR("corpus", "any_all") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(any_all, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void any_all(const int* x, int* y) {
  int v = x[index()];
  y[index()] = __any(v > 98) + 2 * __any(v > 1000) + 4 * __all(v >= 0) + 8 * __all(v > 3);
}

KILN_OPERATOR("corpus", "any_loop") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(any_loop, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void any_loop(const int* x, int* y) {
  int v = x[index()] % 40, rounds = 0, steps = 0;
  while (__any(v > 0)) {
    if (v > 0) {
      v -= 7;
      ++steps;
    }
    ++rounds;
  }
  y[index()] = rounds * 100 + steps;
}

// Those who are still here vote.
KILN_OPERATOR("corpus", "votes_of_the_rest") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(votes_of_the_rest, per_tile(elements(input0) / 128, 1, 1, 128, 1, 1), input0, output0)
__global__ void votes_of_the_rest(const int* x, int* y) {
  int v = x[index()] % 5, seen = 0;
  for (int k = 0; k < v; ++k) {
    unsigned here = (unsigned)(__ballot(1) >> (__lane_id() & ~31u));
    seen = seen * 33 + __popc(here);
  }
  y[index()] = seen;
}

KILN_OPERATOR("corpus", "compact") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(compact, per_tile(elements(input0) / 256, 1, 1, 256, 1, 1), input0, output0)
__global__ void compact(const int* x, int* y) {
  __shared__ int counts[8];
  int t = threadIdx.x, base = blockIdx.x * 256, v = x[base + t];
  y[base + t] = -1;
  unsigned long long wanted = __ballot(v % 2 == 0);
  int lane = __lane_id(), wave = t / warpSize;
  if (lane == 0) counts[wave] = __popcll(wanted);
  __syncthreads();
  int before = 0;
  for (int w = 0; w < wave; ++w) before += counts[w];
  if (v % 2 == 0) y[base + before + __popcll(wanted & ((1ull << lane) - 1))] = v;
}
