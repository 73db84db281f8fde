// Machine code of AMDGPU objects (relocatable or linked) as text, by LLVM's disassembler in this process; NVIDIA's PTX
// is text already. Any thread. Errors: error{corrupted} for an object that is damaged, error{usage} for a kernel that
// it does not have, error{unsupported} for a processor that this LLVM does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::gpu {

// One line for each instruction of the kernel whose entry symbol is `symbol`: "0x0040: v_add_f32_e32 v0, v1, v2",
// offsets in the kernel's code; branches name the offset they go to. Bytes that are no instruction appear as ".long
// 0x...".
std::vector<std::string> disassemble(std::span<const std::byte> object, std::string_view symbol);

// Instructions by the unit that they use. dot2, dot4, dot8: the packed dot products of the vector unit.
struct matrix_instruction_counts {
  std::int64_t mfma = 0, smfmac = 0, wmma = 0, swmmac = 0, dot2 = 0, dot4 = 0, dot8 = 0;
  std::int64_t total() const { return mfma + smfmac + wmma + swmmac + dot2 + dot4 + dot8; }
  friend bool operator==(const matrix_instruction_counts&, const matrix_instruction_counts&) = default;
};

matrix_instruction_counts count_matrix_instructions(std::span<const std::byte> object, std::string_view symbol);

}  // namespace kiln::gpu
