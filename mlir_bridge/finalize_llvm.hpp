// LLVM IR that was made elsewhere (spirv/) → native code, by the same back ends and the same linker as our own kernels.
// Any number of threads at once (one module and context each). Throws error{unsupported} for what a target lacks,
// error{compile_failed} where LLVM gives up.
#pragma once

#include <span>
#include <string>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln {

// Defines the functions kiln.math.NAME that `names` lists ("exp.f32", "pow.f64") for a GPU: those of
// mlir_bridge/gpu/device_functions.hpp.
void define_math(llvm::Module& module, std::span<const std::string> names, const target_row& target);

// `kernel` has its launches, whose symbols the module exports; its object, registers, spills and statistics are filled.
// Loops are vectorized on a CPU. The module is consumed.
void finalize_llvm(llvm::Module& module, const target_row& target, native_kernel& kernel,
                   finalize_trace* trace = nullptr);

}  // namespace kiln
