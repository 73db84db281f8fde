// Kernels that may begin before those in front of them have ended (programmatic dependent launch, sm_90 and later): a
// graph then puts the next kernel's workgroups in place while the results of the last ones are still being written.
#pragma once

#include <span>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln::gpu {

// Where the target has dependent_launch: the kernels of `launches` begin with a wait for what is in front of them, and
// the launches say so. No access to memory can be moved before the wait. What comes after them begins when their
// workgroups have ended: told to begin earlier (griddepcontrol.launch_dependents), it takes the free places of some
// multiprocessors only, which cost resnet50 on the H200 11 % and gained others 6 % at most. Before optimization.
void begin_as_dependent(llvm::Module& module, const target_row& target, std::span<launch> launches);

}  // namespace kiln::gpu
