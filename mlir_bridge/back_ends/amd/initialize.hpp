// Registers LLVM's AMDGPU back end once: code generation, assembler and disassembler. Any thread may call it any number
// of times.
#pragma once

namespace kiln::gpu {

void initialize_amd();

}  // namespace kiln::gpu
