// Compiles LLVM IR to native code for a target of any family: optimizes, generates code, links if the family needs it,
// and reads the compiler's statistics for every launch. Any number of threads at once, each with its own module and
// context. Internal to mlir_bridge.
#pragma once

#include "ir/native_kernel.hpp"
#include "mlir_bridge/back_ends/finalize_trace.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// `kernel` lists its launches, whose symbols the module exports. Fills its object, registers, spills and statistics.
// Consumes the module. Throws error{unsupported} for something that the target lacks, error{compile_failed} if LLVM
// fails.
void make_native(llvm::Module& module, const target_row& target, loop_optimization loops, native_kernel& kernel,
                 finalize_trace& trace);

}  // namespace kiln
