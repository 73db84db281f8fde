// Marks floating-point operations that must be rounded separately, as IEEE 754 says: they are neither fused to fma
// nor, for divisions, replaced by products (set_math_flags in to_llvm.cpp). Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/mlir_common.hpp"

namespace kiln::codegen {

inline constexpr mlir::arith::FastMathFlags rounded_operations = mlir::arith::FastMathFlags::nsz;

}  // namespace kiln::codegen
