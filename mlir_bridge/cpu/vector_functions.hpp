// The functions of libm that a CPU computes for whole vectors instead of lane by lane. Internal to mlir_bridge/cpu.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::cpu {

// Implementations of codegen_target::vector_function for CPUs with multiply-add and without, where sin, cos and tan are
// left to libm: the reduction of angles needs it. Single values are computed like vectors, so that an element's result
// does not depend on its place.
mlir::Value vector_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);
mlir::Value vector_function_without_multiply_add(codegen::code_builder& code, std::string_view name,
                                                 std::span<const mlir::Value> operands);

}  // namespace kiln::cpu
