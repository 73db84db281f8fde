#include "mlir_bridge/back_ends/amd/pinned_instructions.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace kiln::gpu {

namespace {

// Later LLVM versions mark both: llvm/llvm-project pull requests 178314 and 178627.
constexpr std::array rows{
    unmarked_instructions{"gfx11", "llvm.amdgcn.wmma.", "V_WMMA_"},
    unmarked_instructions{"gfx950", "llvm.amdgcn.mfma.scale.", "V_MFMA_SCALE_"},
};

bool is_unmarked(const llvm::Instruction& instruction, const target_row& target) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call || !call->getCalledFunction()) return false;
  const std::string_view name = call->getCalledFunction()->getName();
  return std::ranges::any_of(rows, [&](const unmarked_instructions& row) {
    return target.processor.starts_with(row.processor) && name.starts_with(row.intrinsic);
  });
}

// Returns the last instruction of the block that uses the value, or the value's own instruction if there is none.
llvm::Instruction* last_use(llvm::Instruction& value) {
  llvm::Instruction* last = &value;
  for (llvm::User* user : value.users())
    if (auto* use = llvm::cast<llvm::Instruction>(user);
        use->getParent() == value.getParent() && last->comesBefore(use))
      last = use;
  return last;
}

void pin(llvm::Instruction& value) {
  llvm::IRBuilder<> builder(value.getContext());
  // A value that is live after the block gets the extra use at the block's end. This extends no live range and does not
  // interfere with loads.
  const bool lives_on = llvm::any_of(value.users(), [&](llvm::User* user) {
    return llvm::isa<llvm::PHINode>(user) || llvm::cast<llvm::Instruction>(user)->getParent() != value.getParent();
  });
  builder.SetInsertPoint(lives_on ? value.getParent()->getTerminator() : last_use(value)->getNextNode());
  builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::fake_use, {&value});
}

// Visits instructions from last to first. An instruction stays in the block if it has side effects, if an instruction
// that stays uses its value, or if the block is a loop whose next iteration needs the value.
void pin_in_block(llvm::BasicBlock& block, const target_row& target) {
  llvm::SmallPtrSet<const llvm::User*, 32> staying;
  std::vector<llvm::Instruction*> pinned;
  for (llvm::Instruction& instruction : llvm::reverse(block)) {
    const bool needed_here = llvm::any_of(instruction.users(), [&](llvm::User* user) {
      return staying.contains(user) ||
             (llvm::isa<llvm::PHINode>(user) && llvm::cast<llvm::Instruction>(user)->getParent() == &block);
    });
    const bool stays = needed_here || instruction.isTerminator() || instruction.mayHaveSideEffects();
    const bool unmarked = is_unmarked(instruction, target);
    if (unmarked && !stays) pinned.push_back(&instruction);
    if (unmarked || stays) staying.insert(&instruction);
  }
  for (llvm::Instruction* instruction : pinned) pin(*instruction);
}

}  // namespace

std::span<const unmarked_instructions> unmarked_matrix_instructions() { return rows; }

void pin_matrix_instructions(llvm::Module& module, const target_row& target) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      if (llvm::any_of(block, [&](const llvm::Instruction& i) { return is_unmarked(i, target); }))
        pin_in_block(block, target);
}

}  // namespace kiln::gpu
