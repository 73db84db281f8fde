// An image as the left factor of a contraction, its axes, and its copy with a border of zeros, for convolution and
// transposed convolution. Images are channels_last: [batch, spatial..., channels].
#pragma once

#include "mlir_bridge/cpu/contraction/contraction.hpp"

namespace kiln::cpu {

// How many channels a group of an image has, and how many there is room for in its copy: zeros fill the rest.
struct channel_room {
  std::int64_t groups = 1, channels = 0, room = 0;
};

// The image with `before` and `after` zeros around the last spatial axis, in `type`, in scratch that a stage of its own
// fills.
buffer copy_with_border(kernel_emitter& e, value image, std::int64_t before, std::int64_t after, element_type type,
                        const channel_room& room);

// Axes as a convolution's or a transposed convolution's: outputs are those of the result's spatial dims.
contraction_axis convolution_axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                                  std::int64_t dilation, std::int64_t pad_begin);
contraction_axis transposed_axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                                 std::int64_t dilation, std::int64_t pad_begin);

// Makes the image c.left: where many ranges of rows would be needed at its borders (see row_ranges) or tiles are in
// matrix registers, it is stored in 16 bits that are widened, or the channels of a group do not fill up steps, it is
// copied first. Sets the axes' pitches and left strides; c.axes, c.groups, c.steps, c.by_lane, c.matrix and c.rows are
// set.
void set_image(kernel_emitter& e, contraction& c, value image);

}  // namespace kiln::cpu
