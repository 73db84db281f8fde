// Detects the last of several workgroups to finish with a counter in global memory, so that it can process what all of
// them wrote. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

// Call it in every one of the `count` workgroups that share `counter`, after their writes to global memory. `counter`
// is an index into zeroed i32 memory, which is reset to zero. `body` runs only in the last workgroup to arrive and sees
// the writes of all. Contains barriers. `memory` points to 4 bytes of shared memory that are no longer in use.
void when_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, std::int64_t count,
               Value memory, const std::function<void()>& body);

// The parts of when_last(): counts this workgroup in and returns how many were before it, in every thread; and what the
// last one does before it reads.
Value count_workgroup(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, Value memory);
void begin_as_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter);

}  // namespace kiln::gpu
