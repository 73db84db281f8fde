// Workgroups that count themselves in memory, so that the last of some to arrive goes on with what all of them wrote.
// Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// Every workgroup of `count` that share `counter` (an index into zeroed memory of i32, which is left zero) calls this
// after its writes to global memory; `body` runs in the last of them and sees what all wrote. Contains barriers.
// `memory` points to 4 bytes of shared memory that are no longer in use.
void when_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, std::int64_t count,
               Value memory, const std::function<void()>& body);

}  // namespace kiln::gpu
