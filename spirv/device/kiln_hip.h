// Kiln's device header: the usual HIP names for kernels that travel as amdgcnspirv (docs/custom_ops.md). Needs no ROCm and no other header.
// Nothing here knows a wave size, a grid or a device: what the hardware decides stays a name (llvm.amdgcn.*) until the object is finalized.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__), annotate("kiln.launch_bounds", __VA_ARGS__)))
#define __noreturn__ __attribute__((noreturn))
#define __align__(n) __attribute__((aligned(n)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define __KILN__ 1
#define __KILN_DEVICE__ static __device__ __forceinline__

#include "kiln_types.h"

// ---- Indices ----

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// The sizes lie where HIP keeps them: counts of workgroups at bytes 0, 4, 8 of the implicit arguments, sizes of a workgroup at 12, 14, 16.
#define __KILN_INDEX__(type, get_x_of, get_y_of, get_z_of)                                    \
  struct type {                                                                               \
    __declspec(property(get = __x)) unsigned x;                                               \
    __declspec(property(get = __y)) unsigned y;                                               \
    __declspec(property(get = __z)) unsigned z;                                               \
    static __device__ __forceinline__ unsigned __x() { return get_x_of; }                     \
    static __device__ __forceinline__ unsigned __y() { return get_y_of; }                     \
    static __device__ __forceinline__ unsigned __z() { return get_z_of; }                     \
    __device__ __forceinline__ operator dim3() const { return dim3(__x(), __y(), __z()); }    \
  };
#define __KILN_IMPLICIT__(type, byte) (*(const type*)((const char*)__builtin_amdgcn_implicitarg_ptr() + (byte)))
__KILN_INDEX__(__kiln_thread_index, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
__KILN_INDEX__(__kiln_block_index, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
__KILN_INDEX__(__kiln_block_size, __KILN_IMPLICIT__(unsigned short, 12), __KILN_IMPLICIT__(unsigned short, 14), __KILN_IMPLICIT__(unsigned short, 16))
__KILN_INDEX__(__kiln_grid_size, __KILN_IMPLICIT__(unsigned, 0), __KILN_IMPLICIT__(unsigned, 4), __KILN_IMPLICIT__(unsigned, 8))
struct __kiln_wave_size {
  __device__ __forceinline__ operator int() const { return (int)__builtin_amdgcn_wavefrontsize(); }
};
extern const __device__ __kiln_thread_index threadIdx;
extern const __device__ __kiln_block_index blockIdx;
extern const __device__ __kiln_block_size blockDim;
extern const __device__ __kiln_grid_size gridDim;
// Lanes of a wave: 32 or 64, known when the object is finalized. Not a constant expression: arrays cannot be sized by it.
#define warpSize ((int)__builtin_amdgcn_wavefrontsize())
#define hipThreadIdx_x (threadIdx.x)
#define hipThreadIdx_y (threadIdx.y)
#define hipThreadIdx_z (threadIdx.z)
#define hipBlockIdx_x (blockIdx.x)
#define hipBlockIdx_y (blockIdx.y)
#define hipBlockIdx_z (blockIdx.z)
#define hipBlockDim_x (blockDim.x)
#define hipBlockDim_y (blockDim.y)
#define hipBlockDim_z (blockDim.z)
#define hipGridDim_x (gridDim.x)
#define hipGridDim_y (gridDim.y)
#define hipGridDim_z (gridDim.z)

// ---- Barriers and fences ----

__KILN_DEVICE__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// A barrier after which every thread knows in how many, in any or in all of them the predicate held.
__KILN_DEVICE__ int __syncthreads_count(int predicate) {
  __shared__ int count;
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) count = 0;
  __syncthreads();
  if (predicate) __hip_atomic_fetch_add(&count, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  int result = count;
  __syncthreads();
  return result;
}
__KILN_DEVICE__ int __syncthreads_or(int predicate) { return __syncthreads_count(predicate != 0) != 0; }
__KILN_DEVICE__ int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
__KILN_DEVICE__ void __syncwarp(unsigned long long = ~0ull) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
__KILN_DEVICE__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__KILN_DEVICE__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__KILN_DEVICE__ void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// ---- Lanes of a wave ----
// Masks of the _sync forms are HIP's 64-bit masks. Every lane that takes part must reach the call, as on hardware.

__KILN_DEVICE__ unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
__KILN_DEVICE__ unsigned long long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
__KILN_DEVICE__ int __any(int predicate) { return __ballot(predicate) != 0; }
__KILN_DEVICE__ int __all(int predicate) { return __ballot(!predicate) == 0; }
__KILN_DEVICE__ unsigned long long __activemask() { return __ballot(1); }
__KILN_DEVICE__ unsigned long long __ballot_sync(unsigned long long mask, int predicate) { return __ballot(predicate) & mask; }
__KILN_DEVICE__ int __any_sync(unsigned long long mask, int predicate) { return (__ballot(predicate) & mask) != 0; }
__KILN_DEVICE__ int __all_sync(unsigned long long mask, int predicate) { return (__ballot(!predicate) & mask) == 0; }

// The value of another lane of this wave, word by word.
template <class T>
__KILN_DEVICE__ T __kiln_from_lane(T value, int lane) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  int word[words] = {};
  __builtin_memcpy(word, &value, sizeof(T));
  for (unsigned i = 0; i < words; ++i) word[i] = __builtin_amdgcn_ds_bpermute(lane << 2, word[i]);
  __builtin_memcpy(&value, word, sizeof(T));
  return value;
}
template <class T>
__KILN_DEVICE__ T __shfl(T value, int lane, int width = warpSize) {
  int self = (int)__lane_id();
  return __kiln_from_lane(value, (lane & (width - 1)) + (self & ~(width - 1)));
}
template <class T>
__KILN_DEVICE__ T __shfl_up(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id(), from = self - (int)delta;
  return __kiln_from_lane(value, from < (self & ~(width - 1)) ? self : from);
}
template <class T>
__KILN_DEVICE__ T __shfl_down(T value, unsigned delta, int width = warpSize) {
  int self = (int)__lane_id();
  return __kiln_from_lane(value, (int)((self & (width - 1)) + delta) >= width ? self : self + (int)delta);
}
template <class T>
__KILN_DEVICE__ T __shfl_xor(T value, int lanes, int width = warpSize) {
  int self = (int)__lane_id(), from = self ^ lanes;
  return __kiln_from_lane(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}
template <class T>
__KILN_DEVICE__ T __shfl_sync(unsigned long long, T value, int lane, int width = warpSize) { return __shfl(value, lane, width); }
template <class T>
__KILN_DEVICE__ T __shfl_up_sync(unsigned long long, T value, unsigned delta, int width = warpSize) { return __shfl_up(value, delta, width); }
template <class T>
__KILN_DEVICE__ T __shfl_down_sync(unsigned long long, T value, unsigned delta, int width = warpSize) { return __shfl_down(value, delta, width); }
template <class T>
__KILN_DEVICE__ T __shfl_xor_sync(unsigned long long, T value, int lanes, int width = warpSize) { return __shfl_xor(value, lanes, width); }

// ---- Bits ----

__KILN_DEVICE__ int __popc(unsigned x) { return __builtin_popcount(x); }
__KILN_DEVICE__ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__KILN_DEVICE__ int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
__KILN_DEVICE__ int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
__KILN_DEVICE__ int __ffs(int x) { return x == 0 ? 0 : __popc((unsigned)(x & -x) - 1u) + 1; }
__KILN_DEVICE__ int __ffsll(long long x) { return x == 0 ? 0 : __popcll((unsigned long long)(x & -x) - 1ull) + 1; }
__KILN_DEVICE__ unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__KILN_DEVICE__ unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__KILN_DEVICE__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  unsigned long long al = (unsigned)a, ah = a >> 32, bl = (unsigned)b, bh = b >> 32;
  unsigned long long low = al * bl, middle = ah * bl + (low >> 32), other = al * bh + (unsigned)middle;
  return ah * bh + (middle >> 32) + (other >> 32);
}
__KILN_DEVICE__ long long __mul64hi(long long a, long long b) {
  return (long long)__umul64hi((unsigned long long)a, (unsigned long long)b) - (a < 0 ? b : 0) - (b < 0 ? a : 0);
}
__KILN_DEVICE__ int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
__KILN_DEVICE__ unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
// 32 bits of high:low, shifted.
__KILN_DEVICE__ unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) << (by & 31u) >> 32); }
__KILN_DEVICE__ unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31u)); }
// Four of the eight bytes of b:a, each named by a digit of the selector.
__KILN_DEVICE__ unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= (unsigned)(bytes >> (8 * (selector >> 4 * i & 7u)) & 0xffu) << 8 * i;
  return result;
}
__KILN_DEVICE__ unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
__KILN_DEVICE__ int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }

// ---- Memory ----

__KILN_DEVICE__ void* memcpy(void* to, const void* from, size_t bytes) { return __builtin_memcpy(to, from, bytes); }
__KILN_DEVICE__ void* memset(void* to, int byte, size_t bytes) { return __builtin_memset(to, byte, bytes); }
// A load, whatever cache it asks for.
template <class T>
__KILN_DEVICE__ T __ldg(const T* from) { return *from; }
template <class T>
__KILN_DEVICE__ T __ldcg(const T* from) { return *from; }
template <class T>
__KILN_DEVICE__ T __ldcs(const T* from) { return *from; }

// ---- What a portable kernel cannot have ----

extern "C" __device__ int printf(const char*, ...) __attribute__((unavailable("a portable kernel has no console: write to an output instead")));
extern "C" __device__ void* malloc(__SIZE_TYPE__) __attribute__((unavailable("a portable kernel has no heap: declare scratch memory with KILN_SCRATCH")));
extern "C" __device__ void free(void*) __attribute__((unavailable("a portable kernel has no heap: declare scratch memory with KILN_SCRATCH")));
extern "C" __device__ void __assert_fail(const char*, const char*, unsigned, const char*) __attribute__((unavailable("a portable kernel cannot stop the program")));

extern "C" __device__ void abort() __attribute__((unavailable("a portable kernel cannot stop the program")));
extern "C" __device__ void __trap() __attribute__((unavailable("a portable kernel cannot stop the program")));
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, "", 0, ""))
#endif

#include "kiln_atomics.h"
#include "kiln_math.h"
#include "kiln_half.h"
#include "kiln_std.h"
#include "kiln_operator.h"
