// The target whose code a device runs, also of a device that the table of targets does not name.
#pragma once

#include <optional>
#include <string>

#include "jit/targets.hpp"
#include "runtime/device.hpp"

namespace kiln {

struct device_target {
  target_row row;
  // The generic row of the device's family. Its kernels run on the device, too, and are used where the cache has no
  // kernel of `row`.
  std::optional<target_row> family = {};
  // Empty if `row` describes the device. Otherwise says which code it gets instead.
  std::string note = {};
};

// For an AMD GPU without a row, the generic row of its family. For an NVIDIA GPU without a row, the row of the nearest
// lower architecture, whose PTX the driver compiles. For the host, this CPU. Throws error{unsupported} if none fits.
device_target target_of(const device_info& device);

}  // namespace kiln
