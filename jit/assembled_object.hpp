// What a device's last compiler (ptxas or the driver) makes of a kernel's text. A plain value.
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
