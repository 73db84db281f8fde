// libm's functions for GPUs. Implementations of codegen_target::function. Internal to mlir_bridge/gpu.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

// See codegen/elementary_functions.hpp. Throw error{unsupported} with the name of a function that is not there.
mlir::Value amd_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);
mlir::Value nvidia_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);

}  // namespace kiln::gpu
