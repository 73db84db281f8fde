// Why an operation and its reader are in different kernels, for `kiln compile --explain`. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aot/kernels/partition.hpp"

namespace kiln {

struct kernel_boundary {
  // Names of the two operations.
  std::string producer, consumer;
  // Names of the model's nodes from which the two operations were imported.
  std::string producer_origin, consumer_origin;
  std::string_view reason;
  // Size of the value between the two kernels.
  double bytes = 0;
};

// Returns one entry for each value that one kernel of the partition writes and another kernel reads.
std::vector<kernel_boundary> find_boundaries(const module& m, const partition& parts);

}  // namespace kiln
