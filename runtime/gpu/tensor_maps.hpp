// Encodes tensor descriptors for CUDA devices (sm_90 and later). Any thread.
#pragma once

#include "runtime/device.hpp"
#include "runtime/gpu/state.hpp"

namespace kiln::gpu {

// Throws error{unsupported} if the driver has no tensor maps or the element type is not supported, error{usage} if the
// memory is not aligned to 16 bytes.
void encode_tensor_map(state& of, const tensor_map& map, void* base, encoded_tensor_map* to);

}  // namespace kiln::gpu
