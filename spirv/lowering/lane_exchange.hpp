// amdgcn's operations between lanes and its barriers, as the host's synchronization points (work_items.hpp). Internal
// to spirv/lowering.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace kiln::spirv {

// Emits what replaces the call, with placeholders of work_items.hpp. Returns null for a call of anything else. `lane`
// is i32, the number of the item within its wave.
llvm::Value* lane_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call, llvm::Value* lane);

// Removes the synchronization placeholders from the body of a workgroup that has a single item: there is nobody to wait
// for, and every exchange returns the item's own value.
void drop_synchronization(llvm::Function& body);

}  // namespace kiln::spirv
