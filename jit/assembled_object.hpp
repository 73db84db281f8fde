// Machine code that a device's last compiler (ptxas or the driver) made from a kernel's PTX. A plain value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kiln {

struct assembled_object {
  std::vector<std::byte> bytes;
  std::string by;  // who made it: the cache key's field `driver`; empty: not to be kept
};

}  // namespace kiln
