// Keeps matrix instructions out of branches that only some lanes of a wave take. Internal to mlir_bridge.
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

// Matrix instructions that this LLVM does not mark as convergent.
struct unmarked_instructions {
  std::string_view processor;  // prefix of its name
  std::string_view intrinsic;  // prefix of the name of the LLVM intrinsic
  std::string_view opcode;     // prefix of LLVM's names for the machine instructions
};
std::span<const unmarked_instructions> unmarked_matrix_instructions();

// Pins each of these instructions to its block: where nothing else keeps it there, it gets a use of its result in the
// block that generates no code (llvm.fake.use). Turning the pass off instead costs scalar registers, and its switch is
// an option of the whole process, which LLD resets with every link. After optimization.
void pin_matrix_instructions(llvm::Module& module, const target_row& target);

}  // namespace kiln::gpu
