// The CPU as a target of the shared code generation. Stages have the host ABI of ir/native_kernel.hpp. Internal to
// mlir_bridge/cpu.
#pragma once

#include "mlir_bridge/codegen/codegen_target.hpp"

namespace kiln::codegen {}

namespace kiln::cpu {

using namespace codegen;

const codegen_target& host_codegen_target();

}  // namespace kiln::cpu
