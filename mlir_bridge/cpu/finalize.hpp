// Portable kernel → machine code of a CPU, in memory. Any number of threads may finalize at once (one kernel each).
// Throws error{unsupported} naming what the CPU generators cannot do, error{compile_failed} where LLVM gives up.
#pragma once

#include "mlir_bridge/finalize.hpp"

namespace kiln {

// `kernel` has static shapes (specialized); it is consumed. The object is a relocatable ELF file for target.triple
// whose undefined symbols are memcpy, memmove, memset and libm functions only. Launches follow the host ABI of
// ir/native_kernel.hpp.
native_kernel finalize_cpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                           finalize_trace* trace = nullptr);

// Part of every cache key: changes whenever the same kernel may become other code.
int cpu_pipeline_version();

}  // namespace kiln
