// Tensor descriptors of CUDA devices (sm_90 and later). Any thread.
#pragma once

#include "runtime/device.hpp"
#include "runtime/gpu/state.hpp"

namespace kiln::gpu {

// Throws error{unsupported} without tensor maps or for a type they do not have, error{usage} for memory that is not
// aligned to 16 bytes.
void encode_tensor_map(state& of, const tensor_map& map, void* base, encoded_tensor_map* to);

}  // namespace kiln::gpu
