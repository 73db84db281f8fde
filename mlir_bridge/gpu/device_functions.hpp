// libm's functions for GPUs, which have no libm. They are built from multiply-add, integer arithmetic on the bits, and
// hardware instructions (exp2, log2, reciprocal). f32 functions are within a few units in the last place of libm and
// have its NaN, infinities and denormal results. For f64 there are the exponential functions, pow and fmod; others
// throw. Internal to mlir_bridge/gpu.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

// Names of LLVM's f32 intrinsics for approximations on one GPU family. If `reciprocal` is empty, a division is used.
struct approximations {
  std::string_view exp2, log2, reciprocal;
};
inline constexpr approximations amd_approximations{"llvm.amdgcn.exp2", "llvm.amdgcn.log", "llvm.amdgcn.rcp"};
inline constexpr approximations nvidia_approximations{"llvm.nvvm.ex2.approx.ftz", "llvm.nvvm.lg2.approx.ftz.f",
                                                      "llvm.nvvm.rcp.approx.ftz.f"};
// For tests on a CPU.
inline constexpr approximations generic_approximations{"llvm.exp2", "llvm.log2", ""};

// `name` is the f64 name in libm; operands are f32 or f64 with equal lanes. A name that ends in ".fast" (exp, exp2,
// log, tanh, erf, pow, div, sigmoid) has an error of about 2^-18, which is enough for 16-bit elements. Throws
// error{unsupported} with the name of the function.
mlir::Value device_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands,
                            const approximations& hardware);

// Implementations of codegen_target::function for the two families.
mlir::Value amd_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);
mlir::Value nvidia_function(codegen::code_builder& code, std::string_view name, std::span<const mlir::Value> operands);

}  // namespace kiln::gpu
