// Resize of the last two dimensions: nearest, linear, cubic; every coordinate mode; nearest's four roundings; cubic's coefficient and exclude_outside.
#include "workgroup.h"

enum coordinates { half_pixel, asymmetric, align_corners, pytorch_half_pixel, half_pixel_symmetric, tf_crop_and_resize };

__device__ inline float source_of(int i, int in, int out, float scale, int how, float begin, float end) {
  float o = (float)i;
  switch (how) {
    case asymmetric: return o / scale;
    case align_corners: return out == 1 ? 0.0f : o * (float)(in - 1) / (float)(out - 1);
    case pytorch_half_pixel: return out > 1 ? (o + 0.5f) / scale - 0.5f : 0.0f;
    case half_pixel_symmetric: {
      float exact = scale * (float)in, adjustment = (float)out / exact, center = (float)in * 0.5f;
      return center * (1.0f - adjustment) + (o + 0.5f) / scale - 0.5f;
    }
    case tf_crop_and_resize: return out > 1 ? begin * (float)(in - 1) + o * (end - begin) * (float)(in - 1) / (float)(out - 1) : 0.5f * (begin + end) * (float)(in - 1);
    default: return (o + 0.5f) / scale - 0.5f;
  }
}
__device__ inline float cubic_weight(float x, float a) {
  x = fabsf(x);
  return x <= 1.0f ? ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f : x < 2.0f ? ((a * x - 5.0f * a) * x + 8.0f * a) * x - 4.0f * a : 0.0f;
}
__device__ inline int rounded(float x, int how) {  // round_prefer_floor, round_prefer_ceil, floor, ceil
  float f = floorf(x);
  return (int)(how == 2 ? f : how == 3 ? ceilf(x) : how == 1 ? floorf(x + 0.5f) : (x - f == 0.5f ? f : floorf(x + 0.5f)));
}

// The neighbours of one axis and their weights; the number of them.
__device__ inline int neighbours(float at, int size, int mode, int rounding, float a, int exclude, int* place, float* weight) {
  if (mode == 0) {
    place[0] = min(max(rounded(at, rounding), 0), size - 1), weight[0] = 1.0f;
    return 1;
  }
  float low = floorf(at), fraction = at - low;
  int count = mode == 1 ? 2 : 4, first = (int)low - (mode == 1 ? 0 : 1);
  float sum = 0.0f;
  for (int k = 0; k < count; ++k) {
    int p = first + k;
    weight[k] = mode == 1 ? (k == 0 ? 1.0f - fraction : fraction) : cubic_weight(fraction + 1.0f - (float)k, a);
    if (exclude && (p < 0 || p >= size)) weight[k] = 0.0f;
    place[k] = min(max(p, 0), size - 1);
    sum += weight[k];
  }
  if (exclude)
    for (int k = 0; k < count; ++k) weight[k] /= sum;
  return count;
}

__global__ void resize(const float* x, float* y, int64_t n, int in_h, int in_w, int out_h, int out_w, float scale_h, float scale_w, int mode, int how, int rounding, float a, int exclude,
                       float begin_h, float end_h, float begin_w, float end_w, float outside) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int column = (int)(i % out_w), row = (int)(i / out_w % out_h);
  const float* image = x + i / ((int64_t)out_w * out_h) * (int64_t)in_h * in_w;
  float py = source_of(row, in_h, out_h, scale_h, how, begin_h, end_h), px = source_of(column, in_w, out_w, scale_w, how, begin_w, end_w);
  if (how == tf_crop_and_resize && (py < 0.0f || py > (float)(in_h - 1) || px < 0.0f || px > (float)(in_w - 1))) {
    y[i] = outside;
    return;
  }
  int rows[4], columns[4];
  float row_weight[4], column_weight[4], sum = 0.0f;
  int row_count = neighbours(py, in_h, mode, rounding, a, exclude, rows, row_weight), column_count = neighbours(px, in_w, mode, rounding, a, exclude, columns, column_weight);
  for (int r = 0; r < row_count; ++r) {
    float line = 0.0f;
    for (int c = 0; c < column_count; ++c) line += column_weight[c] * image[rows[r] * (int64_t)in_w + columns[c]];
    sum += row_weight[r] * line;
  }
  y[i] = sum;
}

KILN_OPERATOR("kiln", "Resize")
KILN_INPUT(0, float32)
KILN_REQUIRE(rank(input0) >= 2 && dim(input0, -2) >= 1 && dim(input0, -1) >= 1)
KILN_ATTRIBUTE(height, 1)
KILN_ATTRIBUTE(width, 1)
KILN_ATTRIBUTE(scale_h, 0.0)
KILN_ATTRIBUTE(scale_w, 0.0)
KILN_ATTRIBUTE(mode, "nearest")
KILN_ATTRIBUTE(coordinate_transformation_mode, "half_pixel")
KILN_ATTRIBUTE(nearest_mode, "round_prefer_floor")
KILN_ATTRIBUTE(cubic_coeff_a, -0.75)
KILN_ATTRIBUTE(exclude_outside, 0)
KILN_ATTRIBUTE(begin_h, 0.0)
KILN_ATTRIBUTE(end_h, 1.0)
KILN_ATTRIBUTE(begin_w, 0.0)
KILN_ATTRIBUTE(end_w, 1.0)
KILN_ATTRIBUTE(extrapolation_value, 0.0)
KILN_REQUIRE(dim(input0, -2) <= 2147483647 && dim(input0, -1) <= 2147483647 && height <= 2147483647 && width <= 2147483647)
KILN_OUTPUT(0, float32, with_last(input0, height, width))
KILN_LAUNCH(resize, per_element(elements(output0)), input0, output0, elements(output0), dim(input0, -2), dim(input0, -1), height, width,
            scale_h > 0.0 ? scale_h : real(height) / dim(input0, -2), scale_w > 0.0 ? scale_w : real(width) / dim(input0, -1),
            mode == "nearest" ? 0 : mode == "linear" ? 1 : 2,
            coordinate_transformation_mode == "asymmetric" ? 1 : coordinate_transformation_mode == "align_corners" ? 2 : coordinate_transformation_mode == "pytorch_half_pixel" ? 3
              : coordinate_transformation_mode == "half_pixel_symmetric" ? 4 : coordinate_transformation_mode == "tf_crop_and_resize" ? 5 : 0,
            nearest_mode == "round_prefer_floor" ? 0 : nearest_mode == "round_prefer_ceil" ? 1 : nearest_mode == "floor" ? 2 : 3,
            cubic_coeff_a, exclude_outside, begin_h, end_h, begin_w, end_w, extrapolation_value)
