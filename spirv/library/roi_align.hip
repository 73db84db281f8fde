// RoiAlign of images [n, c, h, w]: each bin of a region averages (or takes the largest of) bilinear samples. A region's image is held inside of the images, as indices of
// Gather are inside of their axis; regions beyond the list of images belong to its last one.
#include "workgroup.h"

__global__ void roi_align(const float* x, const float* regions, const int64_t* images, float* y, int64_t n, int image_count, int64_t list, int channels, int height, int width, int out_h, int out_w, int samples, float scale, float offset, int largest) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int column = (int)(i % out_w), row = (int)(i / out_w % out_h), channel = (int)(i / ((int64_t)out_w * out_h) % channels);
  int64_t region = i / ((int64_t)out_w * out_h * channels);
  const float* box = regions + region * 4;
  float x0 = box[0] * scale - offset, y0 = box[1] * scale - offset, x1 = box[2] * scale - offset, y1 = box[3] * scale - offset;
  float w = x1 - x0, h = y1 - y0;
  if (offset == 0.0f) w = fmaxf(w, 1.0f), h = fmaxf(h, 1.0f);
  float bin_w = w / (float)out_w, bin_h = h / (float)out_h;
  int steps_y = samples > 0 ? samples : (int)ceilf(h / (float)out_h), steps_x = samples > 0 ? samples : (int)ceilf(w / (float)out_w);
  if (image_count == 0 || list == 0) {
    y[i] = 0.0f;
    return;
  }
  int64_t number = images[min(region, list - 1)];
  const float* image = x + (min(max(number, (int64_t)0), (int64_t)image_count - 1) * channels + channel) * (int64_t)height * width;
  float sum = 0.0f, top = -INFINITY;
  for (int sy = 0; sy < steps_y; ++sy)
    for (int sx = 0; sx < steps_x; ++sx) {
      float py = y0 + (float)row * bin_h + ((float)sy + 0.5f) * bin_h / (float)steps_y, px = x0 + (float)column * bin_w + ((float)sx + 0.5f) * bin_w / (float)steps_x;
      float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (py >= -1.0f && py <= (float)height && px >= -1.0f && px <= (float)width) {
        py = fmaxf(py, 0.0f), px = fmaxf(px, 0.0f);
        int low_y = (int)py, low_x = (int)px;
        if (low_y >= height - 1) low_y = height - 1, py = (float)low_y;
        if (low_x >= width - 1) low_x = width - 1, px = (float)low_x;
        int high_y = min(low_y + 1, height - 1), high_x = min(low_x + 1, width - 1);
        float fy = py - (float)low_y, fx = px - (float)low_x;
        part[0] = (1.0f - fy) * (1.0f - fx) * image[low_y * (int64_t)width + low_x];
        part[1] = (1.0f - fy) * fx * image[low_y * (int64_t)width + high_x];
        part[2] = fy * (1.0f - fx) * image[high_y * (int64_t)width + low_x];
        part[3] = fy * fx * image[high_y * (int64_t)width + high_x];
      }
      sum += part[0] + part[1] + part[2] + part[3];
      top = fmaxf(top, fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])));
    }
  int count = steps_y * steps_x;
  y[i] = largest ? (count > 0 ? top : 0.0f) : sum / (float)max(count, 1);
}

// Opset 16 brought the shift by half a pixel.
KILN_OPERATOR("", "RoiAlign")
KILN_INPUT(0, float32)
KILN_INPUT(2, int64)
KILN_ATTRIBUTE(coordinate_transformation_mode, "half_pixel")
KILN_ATTRIBUTE(mode, "avg")
KILN_ATTRIBUTE(output_height, 1)
KILN_ATTRIBUTE(output_width, 1)
KILN_ATTRIBUTE(sampling_ratio, 0)
KILN_ATTRIBUTE(spatial_scale, 1.0)
KILN_ATTRIBUTE(opset, 16)
KILN_REQUIRE(rank(input0) == 4 && rank(input1) == 2 && rank(input2) == 1 && dim(input1, 1) == 4 && (mode == "avg" || mode == "max"))
KILN_REQUIRE(dim(input0, 2) >= 1 && dim(input0, 3) >= 1)
KILN_REQUIRE(max(dim(input0, 0), dim(input0, 1)) <= 2147483647 && max(dim(input0, 2), dim(input0, 3)) <= 2147483647 && output_height <= 2147483647 && output_width <= 2147483647)
KILN_OUTPUT(0, float32, dims(dim(input1, 0), dim(input0, 1), output_height, output_width))
KILN_LAUNCH(roi_align, per_element(elements(output0)), input0, input1, input2, output0, elements(output0), dim(input0, 0), dim(input2, 0), dim(input0, 1), dim(input0, 2), dim(input0, 3), output_height, output_width,
            sampling_ratio, spatial_scale, opset >= 16 && coordinate_transformation_mode == "half_pixel" ? 0.5 : 0.0, mode == "max")
