// Input tensors for timing and checking a kernel: the program's own constants, and seeded random values for the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln {

// Floats are drawn from a standard normal distribution, integers uniformly from [0, integers_below), bools from {0, 1}.
// The default for integers is 0 or 1, because integers that are used as indices must stay in range; kernel_inputs()
// passes a larger bound where the value is a program input with a recorded range (aot/input_ranges.hpp). `type` must be
// static. Deterministic.
literal random_tensor(const shape& type, std::uint64_t seed, std::int64_t integers_below = 2);

struct kernel_input {
  literal data;
  bool constant = false;  // a constant of the program: packing it does not count as run time
};

// The inputs of one instruction of `source`, in order.
std::vector<kernel_input> kernel_inputs(const program& source, const instruction& kernel, std::uint64_t seed);

}  // namespace kiln
