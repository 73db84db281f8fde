// GPUs as targets of the shared code generation (codegen/codegen_target.hpp): a stage is a kernel of threads, each of
// which does one work item. Offsets are 32 bits wide where every tensor of the kernel is small enough, which saves
// registers and instructions. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/codegen_target.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

// Threads of a workgroup of a stage that begin_stage opens.
inline constexpr std::int64_t item_threads = 256;

// index_bits: 32 or 64. The result lives for ever.
const codegen::codegen_target& gpu_codegen_target(target_family family, int index_bits);

}  // namespace kiln::gpu
