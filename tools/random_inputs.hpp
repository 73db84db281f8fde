// Seeded random inputs for a run without inputs: floats from a normal distribution, bools and integers 0 or 1. Integers
// with a range that the compiler recorded (indices, aot/input_ranges.hpp) are drawn from that range.
#pragma once

#include <cstdint>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln::tools {

// For an input of p.main(). `type` must be static. The values depend only on the seed, the input's name, its shape and
// its range.
literal random_input(const program& p, const std::string& name, const shape& type, std::uint64_t seed);

// Zeros, whose pages are not touched before somebody reads them: for an input that nothing reads.
literal untouched_zeros(const shape& type);

}  // namespace kiln::tools
