// Small kernels in LLVM IR, and their compilation with LLVM, for tests of GPU objects after code generation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::test {

// Returns an AMDGPU relocatable object for LLVM IR text (code object version 6). Throws std::runtime_error with LLVM's
// message.
std::vector<std::byte> compile_amdgpu(const std::string& ir, const std::string& processor);
// Returns PTX for LLVM IR text.
std::string compile_nvptx(const std::string& ir, const std::string& processor);

// Kernels `product` (one matrix instruction, 512 bytes of LDS) and `copy`; gfx942's MFMA and gfx1100's WMMA.
extern const std::string mfma_kernels, wmma_kernels;

}  // namespace kiln::test
