// What is the same for GPUs and the host: sizes and indices known from the launch, and instructions of amdgcn as
// expressions. Internal to spirv/lowering.
#pragma once

#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "spirv/lowering/lowering.hpp"

namespace kiln::spirv {

struct index_values {
  llvm::Value* item = nullptr;  // i32: the work item's number in its workgroup, x fastest
  llvm::Value* group =
      nullptr;  // i32: the workgroup's number, x fastest; null where the target knows its three indices
};

std::vector<llvm::CallInst*> calls_of(llvm::Function& function);
void replace(llvm::CallInst& call, llvm::Value* with);

// Indices, sizes, the implicit arguments of HIP: null where `call` is something else.
llvm::Value* index_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call, const launch_site& launch, int wave,
                               const index_values& indices);
// amdgcn's arithmetic for targets without it (rcp, fract, ubfe, ...): null where `call` is something else.
llvm::Value* portable_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call);
// error{unsupported} where a GPU's workgroup has less shared memory than the launch wants.
void check_shared_memory(const llvm::Function& entry, const launch_site& launch, const lowering_target& target);
// error{unsupported} naming a function that is declared, used and not the target's.
void refuse_leftovers(const llvm::Module& module, machine_kind kind);

}  // namespace kiln::spirv
