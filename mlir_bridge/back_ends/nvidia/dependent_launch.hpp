// Programmatic dependent launch (sm_90 and later): a kernel in a graph may start before its predecessors have ended, so
// its workgroups are already resident while the predecessors write their last results.
#pragma once

#include <span>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln::gpu {

// If the target supports dependent launch, each kernel of `launches` that does not wait for its predecessors itself
// (workgroup::await_predecessors) gets a wait at its start, and the launches are marked as dependent, except kernels
// with the attribute `starts_after_predecessors` (dependent_launch_text.hpp). No memory access can be moved before the
// wait. Successors start when this kernel's workgroups have ended, or, where the generator says so
// (workgroup::admit_successors), when they have begun. Most kernels do not, because successors would take the free
// slots of only some multiprocessors: this made resnet50 on the H200 11 % slower. Run it before optimization.
void begin_as_dependent(llvm::Module& module, const target_row& target, std::span<launch> launches);

}  // namespace kiln::gpu
