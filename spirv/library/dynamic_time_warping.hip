// The cheapest path through a table of costs from its first cell to its last, which steps down, right or both at once. Diagonals of cells are
// computed one after another; the path is then followed backwards. Of equal ways, the one from the left is taken, as onnxruntime does. One workgroup.
#include "workgroup.h"

// `best` has a row and a column more than the costs, in front.
__global__ void __launch_bounds__(1024) warp_time(const float* costs, int* path, int64_t* count, float* best, unsigned char* steps, int64_t rows, int64_t columns) {
  const int64_t width = columns + 1, room = rows + columns;
  for (int64_t i = threadIdx.x; i <= rows; i += blockDim.x) best[i * width] = i ? INFINITY : 0;
  for (int64_t i = threadIdx.x + 1; i <= columns; i += blockDim.x) best[i] = INFINITY;
  __threadfence_block();
  __syncthreads();
  for (int64_t diagonal = 0; rows && columns && diagonal < rows + columns - 1; ++diagonal) {
    const int64_t first = diagonal < columns ? 0 : diagonal - columns + 1, last = diagonal < rows ? diagonal : rows - 1;
    for (int64_t r = first + threadIdx.x; r <= last; r += blockDim.x) {
      const int64_t c = diagonal - r;
      float* cell = best + (r + 1) * width + c + 1;
      const float both = cell[-width - 1], above = cell[-width], left = cell[-1];
      const int step = both < above && both < left ? 0 : above < both && above < left ? 1 : 2;
      steps[r * columns + c] = step;
      *cell = costs[r * columns + c] + (step == 0 ? both : step == 1 ? above : left);
    }
    __threadfence_block();
    __syncthreads();
  }
  if (threadIdx.x) return;
  // The length first, then the cells from the last to the first.
  int64_t length = 0;
  for (int pass = 0; pass < 2 && rows && columns; ++pass) {
    int64_t r = rows - 1, c = columns - 1, at = 0;
    while (true) {
      if (pass) path[length - 1 - at] = (int)r, path[room + length - 1 - at] = (int)c;
      ++at;
      if (!r && !c) break;
      const int step = !r ? 2 : !c ? 1 : steps[r * columns + c];
      r -= step != 2, c -= step != 1;
    }
    length = at;
  }
  for (int64_t i = length; i < room; ++i) path[i] = 0, path[room + i] = 0;
  count[0] = length;
}

KILN_OPERATOR("kiln", "DynamicTimeWarping")
KILN_INPUT(0, float32)
KILN_REQUIRE(rank(input0) == 2)
KILN_REQUIRE(elements(input0) <= 1073741824)
KILN_OUTPUT(0, int32, dims(2, dim(input0, 0) + dim(input0, 1)))
KILN_OUTPUT(1, int64, dims(1))
KILN_SCRATCH(0, 4 * (dim(input0, 0) + 1) * (dim(input0, 1) + 1))
KILN_SCRATCH(1, elements(input0))
KILN_LAUNCH(warp_time, per_task(1, 1024), input0, output0, output1, scratch0, scratch1, dim(input0, 0), dim(input0, 1))
