// Seeded inputs for a run that was given none: floats from a normal distribution, bools and unranged integers 0 or 1,
// integers that index something within the range that the compiler recorded (aot/input_ranges.hpp).
#pragma once

#include <cstdint>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln::tools {

// `type` is static. The values depend on the seed, the input's name and the shape only.
literal random_input(const program& p, const std::string& name, const shape& type, std::uint64_t seed);

}  // namespace kiln::tools
