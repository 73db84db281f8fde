// Finds matrix instructions of AMD machine code that some lanes may be off for. A matrix instruction works with the
// registers of all lanes of a wave, so EXEC, the mask of active lanes, has to be full where it runs: WMMA's result is
// undefined otherwise. MFMA ignores EXEC, but the vector instructions that write its operands do not.
//
// The check follows all paths through one kernel. For each instruction it knows whether EXEC is full, which scalar
// registers hold the full mask, and which ones hold at least the lanes that EXEC lacks (LLVM's masks for `else` and for
// lanes that left a loop). It begins with a full EXEC: our workgroups are whole waves. Anything that it does not
// understand counts as narrowing, so it may report too much but never too little.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kiln::test {

struct exec_mask_report {
  int matrix_instructions = 0;
  std::vector<std::string> narrowed;  // the lines of those that a path reaches with a narrowed EXEC, in their order
};

// `lines` as gpu::disassemble gives them. Throws std::runtime_error for a jump whose goal is not in the code.
exec_mask_report check_exec_mask(std::span<const std::string> lines);

}  // namespace kiln::test
