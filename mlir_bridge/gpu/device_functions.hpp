// exp, log, erf, tanh and libm's other functions on GPUs, where there is no libm: from the hardware's exp2 and log2 and from polynomials.
// Internal to mlir_bridge/gpu.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

// machine::function: `name` is libm's for f64; operands are f32 or f64 of equal lanes. Throws error{unsupported} naming the function.
mlir::Value device_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);

}  // namespace kiln::gpu
