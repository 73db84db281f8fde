// Compiles a portable kernel to a native kernel for a target of any family, in memory. Any number of threads may call,
// with one kernel each. Throws error{unsupported}, which names the operation that the target's generators lack, and
// error{compile_failed} if LLVM fails.
#pragma once

#include "ir/native_kernel.hpp"
#include "mlir_bridge/back_ends/finalize_trace.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// `kernel` must have static shapes (specialized) or be an open kernel; it is consumed.
native_kernel finalize(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                       finalize_trace* trace = nullptr);

}  // namespace kiln
