// GPUs as machines of the shared code generation (codegen/machine.hpp): a stage is a kernel of threads, each of which
// does one work item. Offsets are 32 bits wide where every tensor of the kernel is small enough, which saves registers
// and instructions. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/machine.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

// Threads of a workgroup of a stage that begin_stage opens.
inline constexpr std::int64_t item_threads = 256;

// index_bits: 32 or 64. The result lives for ever.
const codegen::machine& gpu_machine(target_family family, int index_bits);

}  // namespace kiln::gpu
