// Names of LLVM's intrinsics for each GPU family, as a table. Internal to mlir_bridge/gpu.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mlir_bridge/codegen/call_intrinsic.hpp"
#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

using namespace codegen;

struct intrinsic_names {
  // Index of a thread in its workgroup (x).
  std::string_view thread;
  // Index of a workgroup in the grid (x, y, z).
  std::array<std::string_view, 3> workgroup;
};
const intrinsic_names& intrinsics(target_family family);

// Instructions that LLVM's schedulers for AMD GPUs may move across a point. Matrix instructions are not among the
// arithmetic.
enum class passing { nothing, arithmetic };
// A point in the schedule: loads that are issued before it stay in front of the work that hides their latency, and that
// work stays in front of the wait. Emits nothing on NVIDIA GPUs, where ptxas schedules.
void schedule_barrier(code_builder& code, target_family family, passing allowed);

// For kernels on NVIDIA GPUs whose loads must all be under way before the first one is needed: ptxas moves loads of
// memory that a kernel does not write (ld.global.nc) to their first use, behind waits and between matrix instructions.
// Call keep_loads_in_place() before the stage ends: its loads are then ordinary ones, which stay in front of an
// issue_loads() or a wait that follows them. ptxas saves registers for more workgroups on a unit than the loads need,
// and delays loads for that, unless it is told that `workgroups` are enough. issue_loads() emits something on targets
// with dependent launch only: a second wait for the preceding kernels, which have ended by then. It takes no time, and
// ptxas moves no load across it.
void keep_loads_in_place(kernel_emitter& e, std::int64_t workgroups = 0);
void issue_loads(kernel_emitter& e);

// Asks for the line of the near cache with this address (NVIDIA).
void prefetch(code_builder& code, Value address);

}  // namespace kiln::gpu
