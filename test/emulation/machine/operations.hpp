// The operations that are emulated, by name: that of LLVM's assembly without the suffix of its encoding.
#pragma once
#include <vector>

#include "wave.hpp"

namespace emulation {

extern const std::vector<operation> comparisons, conversions, float_operations, half_operations, integer_operations,
    lane_operations, lds_operations, matrix_operations, memory_operations, scalar_control, scalar_operations,
    short_operations;

}  // namespace emulation
