// Updates written, added, multiplied into or compared with the elements of a copy of `data` that `indices` name along one axis; the other
// dimensions of data, indices and updates agree.
#include "workgroup.h"

enum reduction { none, add, mul, min_of, max_of };

template <class T>
__global__ void copy_data(const T* x, T* y, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

__device__ inline void multiply(float* at, float value) { __kiln_atomic_update<unsigned>(at, [=](float x) { return x * value; }); }
__device__ inline void multiply(int* at, int value) { __kiln_atomic_update<unsigned>(at, [=](int x) { return x * value; }); }
__device__ inline void multiply(long* at, long value) { __kiln_atomic_update<unsigned long>(at, [=](long x) { return x * value; }); }

template <class T>
__global__ void scatter(const int64_t* indices, const T* updates, T* y, int64_t n, int64_t lines, int64_t size, int64_t inner, int how) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t outer = i / (lines * inner), place = indices[i];
  place += place < 0 ? size : 0;
  if (place < 0 || place >= size) return;  // out of range: left alone
  T* at = y + (outer * size + place) * inner + i % inner;
  T value = updates[i];
  switch (how) {
    case none: *at = value; break;
    case add: atomicAdd(at, value); break;
    case mul: multiply(at, value); break;
    case min_of: atomicMin(at, value); break;
    default: atomicMax(at, value);
  }
}

#define SCATTER(type, onnx)                                                                                                          \
  template __global__ void copy_data<type>(const type*, type*, int64_t);                                                            \
  template __global__ void scatter<type>(const int64_t*, const type*, type*, int64_t, int64_t, int64_t, int64_t, int);              \
  KILN_OPERATOR("kiln", "ScatterElements")                                                                                           \
  KILN_INPUT(0, onnx)                                                                                                                \
  KILN_INPUT(1, int64)                                                                                                               \
  KILN_INPUT(2, onnx)                                                                                                                \
  KILN_ATTRIBUTE(axis, 0)                                                                                                            \
  KILN_ATTRIBUTE(reduction, "none")                                                                                                  \
  KILN_REQUIRE(rank(input1) == rank(input0) && elements(input2) == elements(input1))                                                 \
  KILN_REQUIRE(product(input1, 0, axis) == product(input0, 0, axis))                                                                 \
  KILN_REQUIRE(axis == -1 || product(input1, axis + 1, rank(input1)) == product(input0, axis + 1, rank(input0)))                     \
  KILN_OUTPUT(0, onnx, same_as(input0))                                                                                              \
  KILN_LAUNCH(copy_data<type>, per_element(elements(output0)), input0, output0, elements(output0))                                  \
  KILN_LAUNCH(scatter<type>, per_element(elements(input1)), input1, input2, output0, elements(input1), dim(input1, axis), dim(input0, axis), \
              axis == -1 ? 1 : product(input0, axis + 1, rank(input0)),                                                              \
              reduction == "none" ? 0 : reduction == "add" ? 1 : reduction == "mul" ? 2 : reduction == "min" ? 3 : 4)
SCATTER(float, float32)
SCATTER(int, int32)
SCATTER(long, int64)
