// The CPU as a target of the shared code generation. Stages have the host ABI of ir/native_kernel.hpp. Internal to
// mlir_bridge/cpu.
#pragma once

#include "mlir_bridge/codegen/codegen_target.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::codegen {}

namespace kiln::cpu {

using namespace codegen;

const codegen_target& host_codegen_target(const target_row& row);

// False for x86-64 CPUs before level 3.
bool has_multiply_add(const target_row& row);

}  // namespace kiln::cpu
