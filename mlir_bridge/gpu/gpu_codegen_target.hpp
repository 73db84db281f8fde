// GPUs as targets of the shared code generation (codegen/codegen_target.hpp). A stage is a kernel of threads, each of
// which executes one work item. Offsets have 32 bits if every tensor of the kernel is small enough, which saves
// registers and instructions. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/codegen_target.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

// Number of threads per workgroup in stages that begin_stage opens.
inline constexpr std::int64_t item_threads = 256;

// `index_bits` is 32 or 64. The result is a static object.
const codegen::codegen_target& gpu_codegen_target(target_family family, int index_bits);

}  // namespace kiln::gpu
