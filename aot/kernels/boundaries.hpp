// Why an operation and its reader are in different kernels, for `kiln compile --explain`. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aot/kernels/partition.hpp"

namespace kiln {

struct kernel_boundary {
  std::string producer, consumer;                // operations
  std::string producer_origin, consumer_origin;  // nodes of the model
  std::string_view reason;
  double bytes = 0;  // of the value between them
};

// One for each value that one kernel of the partition writes and another one reads.
std::vector<kernel_boundary> find_boundaries(const module& m, const partition& parts);

}  // namespace kiln
