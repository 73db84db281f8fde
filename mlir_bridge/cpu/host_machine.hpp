// The CPU as a machine of the shared code generation: stages with the host ABI of ir/native_kernel.hpp. Internal to
// mlir_bridge/cpu.
#pragma once

#include "mlir_bridge/codegen/machine.hpp"

namespace kiln::codegen {}

namespace kiln::cpu {

using namespace codegen;

const machine& host_machine();

}  // namespace kiln::cpu
