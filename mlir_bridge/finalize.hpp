// Portable kernel → native kernel for a target of any family, in memory. Any number of threads may finalize at once
// (one kernel each). Throws error{unsupported} naming what the target's generators cannot do, error{compile_failed}
// where LLVM gives up.
#pragma once

#include <string>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// What a finalizer did, for people: filled where the caller asks. Texts are large.
struct finalize_trace {
  bool want_texts = false;  // in: whether to fill the three texts
  std::string mlir;         // as generated
  std::string llvm_ir;      // after optimization
  std::string assembly;
  double generate_ms = 0, lower_ms = 0, optimize_ms = 0, codegen_ms = 0;
};

// `kernel` has static shapes (specialized); it is consumed.
native_kernel finalize(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                       finalize_trace* trace = nullptr);

// Part of every cache key: changes whenever the same kernel may become other code for targets of this family.
int pipeline_version(target_family family);

}  // namespace kiln
