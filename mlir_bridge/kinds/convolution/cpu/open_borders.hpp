// A copy of an image of open sizes with its padding, for convolutions of few channels: all taps of a line of a window
// then lie together in memory, and none of them can be outside.
#pragma once

#include <span>

#include "mlir_bridge/codegen/channel_view.hpp"

namespace kiln::cpu {

using namespace codegen;

// Emits the stage that copies; no stage may be open. `sizes` are those of the image's axes, `begin` and `end` the
// pixels of zeros around them. So many elements behind the last one may be read. The image must have no other channels.
buffer copy_with_borders(kernel_emitter& e, const channel_view& image, std::span<const dim> sizes,
                         std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                         std::int64_t elements_behind);

}  // namespace kiln::cpu
