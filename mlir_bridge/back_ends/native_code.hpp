// LLVM IR → native code, for a target of any family: optimize, generate code, link where the family links, and read
// back what the compiler reports of every launch. Any number of threads at once (one module and context each). Internal
// to mlir_bridge.
#pragma once

#include "ir/native_kernel.hpp"
#include "mlir_bridge/back_ends/finalize_trace.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// `kernel` has its launches, whose symbols the module exports; its object, registers, spills and statistics are filled.
// The module is consumed. Throws error{unsupported} for what the target lacks, error{compile_failed} where LLVM gives
// up.
void make_native(llvm::Module& module, const target_row& target, loop_optimization loops, native_kernel& kernel,
                 finalize_trace& trace);

}  // namespace kiln
