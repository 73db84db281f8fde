// Portable kernel → machine code of a CPU, in memory. Any number of threads may finalize at once (one kernel each).
// Throws error{unsupported} naming what the CPU generators cannot do, error{compile_failed} where LLVM gives up.
#pragma once

#include <string>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/kernel_configuration.hpp"
#include "mlir_bridge/portable_kernel.hpp"
#include "mlir_bridge/target_row.hpp"

namespace kiln {

// What a finalizer did, for people: filled where the caller asks. Texts are large.
struct finalize_trace {
  bool want_texts = false;       // in: whether to fill the three texts
  std::string mlir;              // as generated
  std::string llvm_ir;           // after optimization
  std::string assembly;
  double generate_ms = 0, lower_ms = 0, optimize_ms = 0, codegen_ms = 0;
};

// `kernel` has static shapes (specialized); it is consumed. The object is a relocatable ELF file for target.triple whose undefined
// symbols are memcpy, memmove, memset and libm functions only. Launches follow the host ABI of ir/native_kernel.hpp.
native_kernel finalize_cpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration, finalize_trace* trace = nullptr);

// Part of every cache key: changes whenever the same kernel may become other code.
int cpu_pipeline_version();

}  // namespace kiln
