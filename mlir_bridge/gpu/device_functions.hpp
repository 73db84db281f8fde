// libm's functions on GPUs, where there is no libm: built from multiply-add, integer arithmetic on the bits, and what
// the hardware has (exp2, log2, reciprocal). f32 functions are within a few units in the last place of libm, with its
// NaN, infinities and denormal results; f64 has the exponential ones, pow and fmod; the others throw. Internal to
// mlir_bridge/gpu.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

// Names of LLVM's intrinsics on one f32 of a family; an empty reciprocal is a division.
struct approximations {
  std::string_view exp2, log2, reciprocal;
};
inline constexpr approximations amd_approximations{"llvm.amdgcn.exp2", "llvm.amdgcn.log", "llvm.amdgcn.rcp"};
inline constexpr approximations nvidia_approximations{"llvm.nvvm.ex2.approx.ftz", "llvm.nvvm.lg2.approx.ftz.f",
                                                      "llvm.nvvm.rcp.approx.ftz.f"};
// For tests on a CPU.
inline constexpr approximations generic_approximations{"llvm.exp2", "llvm.log2", ""};

// `name` is libm's for f64; operands are f32 or f64 of equal lanes. A name ending in ".fast" (exp, exp2, log, tanh,
// erf, pow, div, sigmoid) is good to about 2^-18, enough for 16-bit elements. Throws error{unsupported} naming the
// function.
mlir::Value device_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands,
                            const approximations& hardware);

// codegen_target::function of the two families.
mlir::Value amd_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);
mlir::Value nvidia_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);

}  // namespace kiln::gpu
