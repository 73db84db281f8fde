// Boxes by falling score, each dropped that overlaps a chosen one: one workgroup for each image and class, then all lists one after another.
#include "workgroup.h"

__device__ inline float overlap(const float* a, const float* b, int centered) {
  float low[2], high[2], area_a = 1, area_b = 1, common = 1;
  for (int d = 0; d < 2; ++d) {
    float a0, a1, b0, b1;
    if (centered) a0 = a[d] - a[2 + d] * 0.5f, a1 = a[d] + a[2 + d] * 0.5f, b0 = b[d] - b[2 + d] * 0.5f, b1 = b[d] + b[2 + d] * 0.5f;
    else a0 = fminf(a[d], a[2 + d]), a1 = fmaxf(a[d], a[2 + d]), b0 = fminf(b[d], b[2 + d]), b1 = fmaxf(b[d], b[2 + d]);
    low[d] = fmaxf(a0, b0), high[d] = fminf(a1, b1);
    area_a *= a1 - a0, area_b *= b1 - b0, common *= fmaxf(high[d] - low[d], 0.0f);
  }
  float joined = area_a + area_b - common;
  return joined > 0.0f ? common / joined : 0.0f;
}

// What one thread chooses: it takes boxes from a heap and compares each with those chosen before. Returns their number. `heap` has room for n.
__device__ inline int choose_alone(const float* box, const float* score, int* heap, int* chosen, int n, int most, float overlap_limit, float score_limit, int centered) {
  int size = 0, picked = 0;
  auto before = [&](int a, int b) { return score[a] > score[b] || (score[a] == score[b] && a < b); };
  auto sink = [&](int at) {
    int moved = heap[at];
    for (int below; (below = 2 * at + 1) < size; at = below) {
      if (below + 1 < size && before(heap[below + 1], heap[below])) ++below;
      if (!before(heap[below], moved)) break;
      heap[at] = heap[below];
    }
    heap[at] = moved;
  };
  for (int i = 0; i < n; ++i)
    if (score[i] > score_limit) heap[size++] = i;
  for (int i = size / 2; i-- > 0;) sink(i);
  while (picked < most && size > 0) {
    int next = heap[0];
    heap[0] = heap[--size];
    sink(0);
    bool kept = true;
    for (int c = 0; c < picked && kept; ++c) kept = !(overlap(box + 4 * (int64_t)next, box + 4 * (int64_t)chosen[c], centered) > overlap_limit);
    if (kept) chosen[picked++] = next;
  }
  return picked;
}

__global__ void __launch_bounds__(256) choose_boxes(const float* boxes, const float* scores, float* alive, int* chosen, int* counts, int n, int classes, int most, float overlap_limit, float score_limit, int centered) {
  __shared__ float best_score[256];
  __shared__ int best_box[256];
  int thread = threadIdx.x, image = blockIdx.x / classes, picked = 0;
  const float* box = boxes + (int64_t)image * n * 4;
  const float* score = scores + (int64_t)blockIdx.x * n;
  float* left = alive + (int64_t)blockIdx.x * n;
  if (blockDim.x == 1) {
    counts[blockIdx.x] = choose_alone(box, score, (int*)left, chosen + (int64_t)blockIdx.x * most, n, most, overlap_limit, score_limit, centered);
    return;
  }
  for (int i = thread; i < n; i += blockDim.x) left[i] = score[i] > score_limit ? score[i] : -INFINITY;
  while (picked < most) {
    float high = -INFINITY;
    int at = n;
    for (int i = thread; i < n; i += blockDim.x)
      if (left[i] > high) high = left[i], at = i;
    best_score[thread] = high, best_box[thread] = at;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
      if (thread < d) {
        float other = best_score[thread + d];
        int other_box = best_box[thread + d];
        if (other > best_score[thread] || (other == best_score[thread] && other_box < best_box[thread])) best_score[thread] = other, best_box[thread] = other_box;
      }
      __syncthreads();
    }
    int winner = best_box[0];
    __syncthreads();
    if (winner == n) break;  // the same for all threads
    if (thread == 0) chosen[(int64_t)blockIdx.x * most + picked] = winner;
    ++picked;
    for (int i = thread; i < n; i += blockDim.x)
      if (left[i] > -INFINITY && (i == winner || overlap(box + 4 * (int64_t)i, box + 4 * (int64_t)winner, centered) > overlap_limit)) left[i] = -INFINITY;
  }
  if (thread == 0) counts[blockIdx.x] = picked;
}

__global__ void __launch_bounds__(256) join_lists(const int* chosen, const int* counts, int64_t* result, int64_t* count, int lists, int classes, int most) {
  int64_t at = 0;
  for (int l = 0; l < lists; ++l) {
    for (int i = threadIdx.x; i < counts[l]; i += blockDim.x) {
      int64_t* row = result + (at + i) * 3;
      row[0] = l / classes, row[1] = l % classes, row[2] = chosen[(int64_t)l * most + i];
    }
    at += counts[l];
  }
  for (int64_t i = at * 3 + threadIdx.x; i < (int64_t)lists * most * 3; i += blockDim.x) result[i] = -1;
  if (threadIdx.x == 0) count[0] = at;
}

KILN_OPERATOR("kiln", "NonMaxSuppression")
KILN_INPUT(0, float32)
KILN_INPUT(1, float32)
KILN_REQUIRE(rank(input0) == 3 && rank(input1) == 3)
KILN_REQUIRE(dim(input0, 0) == dim(input1, 0) && dim(input0, 1) == dim(input1, 2) && dim(input0, 2) == 4)
KILN_REQUIRE(elements(input1) <= 2147483647)
KILN_ATTRIBUTE(max_output_boxes_per_class, 1)
KILN_ATTRIBUTE(iou_threshold, 0.0)
KILN_ATTRIBUTE(score_threshold, -3.0e38)
KILN_ATTRIBUTE(center_point_box, 0)
KILN_OUTPUT(0, int64, dims(dim(input1, 0) * dim(input1, 1) * min(max_output_boxes_per_class, dim(input0, 1)), 3))
KILN_OUTPUT(1, int64, dims(1))
KILN_SCRATCH(0, 4 * elements(input1))
KILN_SCRATCH(1, 4 * dim(input1, 0) * dim(input1, 1) * min(max_output_boxes_per_class, dim(input0, 1)))
KILN_SCRATCH(2, 4 * dim(input1, 0) * dim(input1, 1))
KILN_LAUNCH(choose_boxes, per_task(dim(input1, 0) * dim(input1, 1), 256), input0, input1, scratch0, scratch1, scratch2, dim(input0, 1), dim(input1, 1), min(max_output_boxes_per_class, dim(input0, 1)), iou_threshold, score_threshold, center_point_box)
KILN_LAUNCH(join_lists, per_task(1, 256), scratch1, scratch2, output0, output1, dim(input1, 0) * dim(input1, 1), dim(input1, 1), min(max_output_boxes_per_class, dim(input0, 1)))
