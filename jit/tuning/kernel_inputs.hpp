// Tensors to time and check a kernel with: its constants as the program has them, seeded random values for the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln {

// Floats from a normal distribution; bools and integers 0 or 1, since those that index something must stay in range,
// unless the value is an input of the program with a recorded range (aot/input_ranges.hpp). `type` is static. Depends
// on its arguments only.
literal random_tensor(const shape& type, std::uint64_t seed, std::int64_t integers_below = 2);

struct kernel_input {
  literal data;
  bool constant = false;  // of the program: packing it does not count as run time
};

// Of one instruction of `source`, in order.
std::vector<kernel_input> kernel_inputs(const program& source, const instruction& kernel, std::uint64_t seed);

}  // namespace kiln
