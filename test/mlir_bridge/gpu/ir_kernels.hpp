// Small kernels in LLVM IR for tests of what happens to GPU objects after code generation, and their compilation
// through LLVM.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::test {

// AMDGPU relocatable object of LLVM IR text, code object version 6. Throws std::runtime_error with LLVM's words.
std::vector<std::byte> compile_amdgpu(const std::string& ir, const std::string& processor);
// NVPTX text of LLVM IR text.
std::string compile_nvptx(const std::string& ir, const std::string& processor);

// Kernels `product` (one matrix instruction, 512 bytes of LDS) and `copy`; gfx942's MFMA and gfx1100's WMMA.
extern const std::string mfma_kernels, wmma_kernels;

}  // namespace kiln::test
