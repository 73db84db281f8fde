// normalize of few long rows, such as a group norm of one group: work items divide the rows.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

// Emits the kernel and returns true if the rows are few and long, and have an outer axis along which they can be
// divided.
bool emit_split_normalize(codegen::kernel_emitter& e);

}  // namespace kiln::cpu
