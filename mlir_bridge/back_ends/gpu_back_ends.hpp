// LLVM's GPU back ends, registered once. Any thread may call it, any number of times.
#pragma once

namespace kiln::gpu {

// AMDGPU (code generation, assembly in both directions, disassembly) and NVPTX (code generation).
void initialize_back_ends();

}  // namespace kiln::gpu
