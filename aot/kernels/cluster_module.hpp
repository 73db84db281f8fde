// Writes one cluster of a partition as a module of its own: parameters p0, p1, ... in the order in which they are met,
// scalars as constants, no origins and no names of the model, so that equal layers give equal text and share one
// payload.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aot/kernels/partition.hpp"

namespace kiln {

struct cluster_copy {
  std::unique_ptr<module> body;
  std::vector<value> arguments;      // values of the model's module, one for each parameter
  std::string symbol;                // "convolution_add_relu", "map_mul_add"; a function of the body only
  std::vector<std::string> origins;  // of all that was copied, each once
  std::vector<const instruction*>
      untold;  // the model's, whose copies have dims that the shapes of parameters and outputs do not tell
};

cluster_copy copy_cluster(const partition& whole, std::size_t index);

}  // namespace kiln
