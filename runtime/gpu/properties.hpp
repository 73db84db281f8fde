// Queries the properties of a GPU from its driver. Any thread.
#pragma once

#include "runtime/device.hpp"
#include "runtime/gpu/driver.hpp"

namespace kiln::gpu {

// Needs no context. Throws error{device_lost} when the device does not answer.
device_info query_info(const gpu_driver& from, int ordinal);

// Whether kernels made for `target` run on a device whose own target is `device_target`.
bool runs_on(api which, std::string_view device_target, std::string_view target);

}  // namespace kiln::gpu
