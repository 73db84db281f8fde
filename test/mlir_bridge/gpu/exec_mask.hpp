// Finds matrix instructions in AMD machine code that may be executed while some lanes are inactive. A matrix
// instruction uses the registers of all lanes of a wave, so EXEC, the mask of active lanes, must be full; otherwise
// WMMA's result is undefined. MFMA ignores EXEC, but the vector instructions that write its operands do not.
//
// The check follows all paths through one kernel. For each instruction it tracks whether EXEC is full, which scalar
// registers hold the full mask, and which hold at least the lanes missing from EXEC (LLVM's masks for `else` and for
// lanes that left a loop). EXEC is full at the start, because our workgroups are whole waves. Unknown instructions
// count as narrowing EXEC, so the check may report too much but never too little.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kiln::test {

struct exec_mask_report {
  int matrix_instructions = 0;
  // Lines of the matrix instructions that a path reaches with a narrowed EXEC, in order.
  std::vector<std::string> narrowed;
};

// `lines` is the result of gpu::disassemble. Throws std::runtime_error for a branch whose target is not in the code.
exec_mask_report check_exec_mask(std::span<const std::string> lines);

}  // namespace kiln::test
