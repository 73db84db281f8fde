// Everything about a device that kernel timings depend on, as one line of text. Devices with the same line share tuning
// records. Host names, clock rates, driver versions and device indices are not part of it.
#pragma once

#include <string>

#include "mlir_bridge/targets/target_row.hpp"
#include "runtime/device.hpp"

namespace kiln {

// "amdgpu gfx942:sramecc+:xnack- 304 units 192 GiB", "cpu sapphirerapids 512x32 2 threads caches 48K 2048K 107520K
// features 0123456789abcdef". // `target` is the target that code is generated for: the same processor running
// x86-64-v3 code is a different class.
std::string device_class(const device_info& device, const target_row& target);

}  // namespace kiln
