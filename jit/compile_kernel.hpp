// One portable kernel to the bytes of a native one (ir/native_kernel.hpp): what the JIT does for each group, the tuner
// for each candidate, in this process or in a worker.
#pragma once

#include <cstddef>
#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// A kernel that has been specialized, to static shapes. Throws what finalize() throws. The kernel is consumed.
std::vector<std::byte> compile_specialized(portable_kernel kernel, const target_row& target,
                                           const kernel_configuration& configuration = {});

// Shapes are static. The kernel is consumed. Throws what specialize() and finalize() throw. Any number of threads, one
// kernel each.
std::vector<std::byte> compile_kernel(portable_kernel kernel, const std::vector<shape>& inputs,
                                      const std::vector<shape>& outputs, const target_row& target,
                                      const kernel_configuration& configuration = {});

}  // namespace kiln
