// Compiles LLVM IR from other sources (spirv/) to native code with the back ends and linker of our own kernels. Any
// number of threads at once, each with its own module and context. Throws error{unsupported} for something that a
// target lacks, error{compile_failed} if LLVM fails.
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

// Defines the functions kiln.math.NAME listed in `names` ("exp.f32", "pow.f64") for a GPU, with the implementations of
// mlir_bridge/codegen/elementary_functions.hpp.
void define_math(llvm::Module& module, std::span<const std::string> names, const target_row& target);

// `kernel` lists its launches, whose symbols the module exports. Fills its object, registers, spills and statistics. On
// a CPU, loops are vectorized. Consumes the module.
void finalize_llvm(llvm::Module& module, const target_row& target, native_kernel& kernel,
                   finalize_trace* trace = nullptr);

}  // namespace kiln
