// Keeps matrix instructions out of branches in which only some lanes of a wave are active. Internal to mlir_bridge.
//
// A matrix instruction works with the registers of all lanes. In such a branch EXEC, the mask of active lanes, is
// narrowed: there WMMA is undefined, and the moves that prepare a matrix instruction's operands skip lanes. LLVM marks
// these instructions as convergent, and no pass moves them into a branch. LLVM 22 forgets the mark of some machine
// instructions, and its MachineSinking pass moves them to a guarded store of their result. (The intrinsics have the
// mark, so passes over LLVM IR are safe.) test/mlir_bridge/gpu/exec_mask_test.cpp compares the list with LLVM's table
// of instructions.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln::gpu {

// Matrix instructions that this LLVM fails to mark as convergent.
struct unmarked_instructions {
  // Prefix of the processor's name.
  std::string_view processor;
  // Prefix of the name of the LLVM intrinsic.
  std::string_view intrinsic;
  // Prefix of LLVM's opcode names.
  std::string_view opcode;
};
std::span<const unmarked_instructions> unmarked_matrix_instructions();

// Keeps each of these instructions in its basic block. If the block has no other use of the result, adds one that
// generates no code (llvm.fake.use). Disabling MachineSinking instead would cost scalar registers, and its switch is a
// process-wide option that LLD resets with every link. Run it after optimization.
void pin_matrix_instructions(llvm::Module& module, const target_row& target);

}  // namespace kiln::gpu
