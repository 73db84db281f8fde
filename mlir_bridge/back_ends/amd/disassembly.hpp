// Disassembles AMDGPU objects (relocatable or linked) with LLVM's disassembler in this process. (NVIDIA's PTX is text
// already.) Any thread. Errors: error{corrupted} for a damaged object, error{usage} for a kernel that the object lacks,
// error{unsupported} for a processor that this LLVM does not support.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::gpu {

// Returns one line per instruction of the kernel with the entry symbol `symbol`: "0x0040: v_add_f32_e32 v0, v1, v2".
// Offsets are relative to the kernel's code; branches show the offset of their target. Bytes that are no instruction
// appear as ".long 0x...".
std::vector<std::string> disassemble(std::span<const std::byte> object, std::string_view symbol);

// Numbers of instructions, grouped by the unit that executes them. dot2, dot4 and dot8 are the packed dot products of
// the vector unit.
struct matrix_instruction_counts {
  std::int64_t mfma = 0, smfmac = 0, wmma = 0, swmmac = 0, dot2 = 0, dot4 = 0, dot8 = 0;
  std::int64_t total() const { return mfma + smfmac + wmma + swmmac + dot2 + dot4 + dot8; }
  friend bool operator==(const matrix_instruction_counts&, const matrix_instruction_counts&) = default;
};

matrix_instruction_counts count_matrix_instructions(std::span<const std::byte> object, std::string_view symbol);

}  // namespace kiln::gpu
