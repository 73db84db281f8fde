// f32 numbers as sums of three bf16 parts, so that 16-bit matrix instructions multiply them. The parts hold all 24
// bits, and bf16 has the range of f32. Of the nine products of parts, the six largest are added; what is left out is at
// most 2^-22 of a product and about 2^-25 on average (compare Henry, Tang, Heinecke, "Leveraging the bfloat16
// artificial intelligence datatype for higher-precision computations"). Internal to mlir_bridge/gpu.
#pragma once

#include <array>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

using namespace codegen;

inline constexpr std::int64_t f32_parts = 3;

struct part_product {
  std::int64_t a, b;  // number of the part; 0 is the largest
};

// Small products come first. Matrix units round sums toward zero, which costs less while sums are small.
inline constexpr std::array<part_product, 6> part_products{{{0, 2}, {2, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}}};

// Returns the parts of f32 numbers (a scalar or a vector) as 16-bit integers that hold bf16, the largest part first. An
// infinity has parts 0 besides the first. A NaN is NaN in the last two.
std::array<Value, f32_parts> split_f32(code_builder& code, Value numbers);

}  // namespace kiln::gpu
