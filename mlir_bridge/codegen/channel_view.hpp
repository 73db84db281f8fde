// An image that is a range of the channels of a larger image in memory. Generators read it where it is, with the pitch
// of the larger image, instead of copying it.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

// Channel c of the value is channel first + c of `memory`. All other axes are the same.
struct channel_view {
  buffer memory;
  std::int64_t first = 0;
  std::int64_t pitch() const { return memory.sizes.back().value(); }  // elements from one pixel to the next
};

// Returns the view of an image, looking through slices of channels. nullopt if the image is computed otherwise.
std::optional<channel_view> find_channels(const kernel_emitter& e, value image);
// Returns find_channels(), or materializes the image. No stage may be open.
channel_view materialize_channels(kernel_emitter& e, value image);

}  // namespace kiln::codegen
