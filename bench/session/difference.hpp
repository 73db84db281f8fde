// Compares the outputs of two runs.
#pragma once

#include <vector>

#include "ir/literal.hpp"

namespace kiln::bench {

// Returns the largest difference of two results relative to the largest element; infinite if they cannot be compared.
double difference(const std::vector<literal>& a, const std::vector<literal>& b);

}  // namespace kiln::bench
