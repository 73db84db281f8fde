// GridSample of volumes [n, c, d, h, w] (images are volumes of depth 1 here): nearest, linear; zeros, border, reflection. And of images, cubic too.
#include "workgroup.h"

__device__ inline float folded(float x, float low, float high) {  // reflection: a triangle wave between low and high
  float span = high - low;
  if (span <= 0.0f) return low;
  float phase = fmodf(fabsf(x - low), 2.0f * span);
  return low + (phase > span ? 2.0f * span - phase : phase);
}
__device__ inline float to_pixels(float g, int size, int corners) {
  return corners ? (g + 1.0f) * 0.5f * (float)(size - 1) : ((g + 1.0f) * (float)size - 1.0f) * 0.5f;
}
__device__ inline float padded(float x, int size, int padding, int corners) {
  if (padding == 1) return fminf(fmaxf(x, 0.0f), (float)(size - 1));
  if (padding == 2) return fminf(fmaxf(corners ? folded(x, 0.0f, (float)(size - 1)) : folded(x, -0.5f, (float)size - 0.5f), 0.0f), (float)(size - 1));
  return x;
}
// One pixel; outside: zero, the border's, or the reflected one's.
__device__ inline float pixel(const float* image, int y, int x, int height, int width, int padding, int corners) {
  if (padding != 0) y = (int)padded((float)y, height, padding, corners), x = (int)padded((float)x, width, padding, corners);
  return y >= 0 && y < height && x >= 0 && x < width ? image[y * (int64_t)width + x] : 0.0f;
}
__device__ inline float cubic_weight(float x) {  // Keys, a = -0.75
  const float a = -0.75f;
  x = fabsf(x);
  return x <= 1.0f ? ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f : x < 2.0f ? ((a * x - 5.0f * a) * x + 8.0f * a) * x - 4.0f * a : 0.0f;
}

__global__ void sample_images(const float* x, const float* grid, float* y, int64_t n, int channels, int height, int width, int64_t points, int mode, int padding, int corners) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t point = i % points, batch = i / (points * channels);
  const float* at = grid + (batch * points + point) * 2;
  const float* image = x + (i / points) * (int64_t)height * width;
  float px = to_pixels(at[0], width, corners), py = to_pixels(at[1], height, corners), sum = 0.0f;
  if (mode == 0) {
    sum = pixel(image, (int)rintf(padded(py, height, padding, corners)), (int)rintf(padded(px, width, padding, corners)), height, width, padding, corners);
  } else if (mode == 1) {
    px = padded(px, width, padding, corners), py = padded(py, height, padding, corners);
    float fy = floorf(py), fx = floorf(px), wy = py - fy, wx = px - fx;
    int ly = (int)fy, lx = (int)fx;
    sum = (1.0f - wy) * ((1.0f - wx) * pixel(image, ly, lx, height, width, padding, corners) + wx * pixel(image, ly, lx + 1, height, width, padding, corners)) +
          wy * ((1.0f - wx) * pixel(image, ly + 1, lx, height, width, padding, corners) + wx * pixel(image, ly + 1, lx + 1, height, width, padding, corners));
  } else {
    float fy = floorf(py), fx = floorf(px);
    for (int r = -1; r <= 2; ++r)
      for (int c = -1; c <= 2; ++c)
        sum += cubic_weight(py - fy - (float)r) * cubic_weight(px - fx - (float)c) * pixel(image, (int)fy + r, (int)fx + c, height, width, padding, corners);
  }
  y[i] = sum;
}

__global__ void sample_volumes(const float* x, const float* grid, float* y, int64_t n, int channels, int depth, int height, int width, int64_t points, int mode, int padding, int corners) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t point = i % points, batch = i / (points * channels);
  const float* at = grid + (batch * points + point) * 3;
  const float* volume = x + (i / points) * (int64_t)depth * height * width;
  float p[3] = {padded(to_pixels(at[2], depth, corners), depth, padding, corners), padded(to_pixels(at[1], height, corners), height, padding, corners),
                padded(to_pixels(at[0], width, corners), width, padding, corners)};
  float sum = 0.0f;
  for (int corner = 0; corner < (mode == 0 ? 1 : 8); ++corner) {
    float weight = 1.0f;
    int place[3];
    for (int d = 0; d < 3; ++d) {
      float low = mode == 0 ? rintf(p[d]) : floorf(p[d]), fraction = p[d] - low;
      int up = (corner >> d) & 1;
      place[d] = (int)low + up;
      if (mode != 0) weight *= up ? fraction : 1.0f - fraction;
    }
    int z = place[0];
    if (padding != 0) z = (int)padded((float)z, depth, padding, corners);
    if (z >= 0 && z < depth && weight != 0.0f) sum += weight * pixel(volume + z * (int64_t)height * width, place[1], place[2], height, width, padding, corners);
  }
  y[i] = sum;
}

#define GRID_ATTRIBUTES                      \
  KILN_INPUT(0, float32)                     \
  KILN_INPUT(1, float32)                     \
  KILN_ATTRIBUTE(mode, "linear")             \
  KILN_ATTRIBUTE(padding_mode, "zeros")      \
  KILN_ATTRIBUTE(align_corners, 0)
#define GRID_NUMBERS mode == "nearest" ? 0 : (mode == "cubic" || mode == "bicubic") ? 2 : 1, padding_mode == "zeros" ? 0 : padding_mode == "border" ? 1 : 2, align_corners

KILN_OPERATOR("kiln", "GridSample")
GRID_ATTRIBUTES
KILN_REQUIRE(rank(input0) == 4 && rank(input1) == 4)
KILN_REQUIRE(dim(input0, 0) == dim(input1, 0) && dim(input1, 3) == 2)
KILN_REQUIRE(max(dim(input0, 1), max(dim(input0, 2), dim(input0, 3))) <= 2147483647)
KILN_OUTPUT(0, float32, dims(dim(input0, 0), dim(input0, 1), dim(input1, 1), dim(input1, 2)))
KILN_LAUNCH(sample_images, per_element(elements(output0)), input0, input1, output0, elements(output0), dim(input0, 1), dim(input0, 2), dim(input0, 3), dim(input1, 1) * dim(input1, 2), GRID_NUMBERS)

KILN_OPERATOR("kiln", "GridSample")
GRID_ATTRIBUTES
KILN_REQUIRE(rank(input0) == 5 && rank(input1) == 5 && mode != "cubic" && mode != "bicubic")
KILN_REQUIRE(dim(input0, 0) == dim(input1, 0) && dim(input1, 4) == 3)
KILN_REQUIRE(max(max(dim(input0, 1), dim(input0, 2)), max(dim(input0, 3), dim(input0, 4))) <= 2147483647)
KILN_OUTPUT(0, float32, dims(dim(input0, 0), dim(input0, 1), dim(input1, 1), dim(input1, 2), dim(input1, 3)))
KILN_LAUNCH(sample_volumes, per_element(elements(output0)), input0, input1, output0, elements(output0), dim(input0, 1), dim(input0, 2), dim(input0, 3), dim(input0, 4),
            dim(input1, 1) * dim(input1, 2) * dim(input1, 3), GRID_NUMBERS)
