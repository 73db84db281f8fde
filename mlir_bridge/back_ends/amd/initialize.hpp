// LLVM's AMDGPU back end, registered once: code generation, assembly in both directions, disassembly. Any thread may
// call it, any number of times.
#pragma once

namespace kiln::gpu {

void initialize_amd();

}  // namespace kiln::gpu
