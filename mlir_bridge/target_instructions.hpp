// The matrix instructions of a target, as text for people and JSON.
#pragma once

#include <string>
#include <vector>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// One entry for each instruction that products of f16, bf16, f32 and i8 can use: "f16 16x16x16", the factors' type and
// the shape as rows x columns x depth. Empty for targets without a matrix unit.
std::vector<std::string> matrix_instructions_of(const target_row& target);

}  // namespace kiln
