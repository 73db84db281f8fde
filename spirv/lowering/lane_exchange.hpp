// amdgcn's operations between lanes and its barriers, as the host's synchronization points (work_items.hpp). Internal
// to spirv/lowering.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace kiln::spirv {

// Emits what replaces the call, with placeholders of work_items.hpp. Returns null for a call of anything else. `lane`
// is i32, the number of the item within its wave.
llvm::Value* lane_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call, llvm::Value* lane);

// Removes the placeholders from the body of a workgroup's only item: it waits for nobody, and its own value is the only
// one.
void meet_nobody(llvm::Function& body);

}  // namespace kiln::spirv
