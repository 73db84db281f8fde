// What the compiler reports of every launch, read back from the code. Internal to mlir_bridge.
#pragma once

#include "ir/native_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

// Fills the statistics of the launches, and the kernel's registers and spills, from its object. Throws
// error{compile_failed} where a launch has no code.
void add_statistics(native_kernel& kernel, const target_row& target);

}  // namespace kiln::gpu
