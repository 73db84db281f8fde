// Compiles one portable kernel to the bytes of a native one (ir/native_kernel.hpp). The JIT does this for each group
// and the tuner for each candidate, in this process or in a worker.
#pragma once

#include <cstddef>
#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// Compiles a kernel that has already been specialized to static shapes. Throws what finalize() throws. The kernel is
// consumed.
std::vector<std::byte> compile_specialized(portable_kernel kernel, const target_row& target,
                                           const kernel_configuration& configuration = {});

// Specializes and compiles a kernel. Shapes must be static. The kernel is consumed. Throws what specialize() and
// finalize() throw. Several threads may call it, each with its own kernel.
std::vector<std::byte> compile_kernel(portable_kernel kernel, const std::vector<shape>& inputs,
                                      const std::vector<shape>& outputs, const target_row& target,
                                      const kernel_configuration& configuration = {});

}  // namespace kiln
