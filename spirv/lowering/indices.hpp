// Lowering steps shared by GPUs and the host: sizes and indices that are known from the launch, and amdgcn intrinsics
// that are expanded to expressions. Internal to spirv/lowering.
#pragma once

#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "spirv/lowering/lowering.hpp"

namespace kiln::spirv {

struct index_values {
  // i32: the linear index of the work item in its workgroup, x fastest.
  llvm::Value* item = nullptr;
  // i32: the linear index of the workgroup, x fastest. Null if the target provides its three indices.
  llvm::Value* group = nullptr;
  // The kernel's table of sizes; null if the entry has none.
  llvm::Value* table = nullptr;
};

std::vector<llvm::CallInst*> calls_of(llvm::Function& function);
void replace(llvm::CallInst& call, llvm::Value* with);

// Returns the replacement of a call for indices, sizes or HIP's implicit arguments; null for any other call.
llvm::Value* index_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call, const launch_site& launch, int wave,
                               const index_values& indices);
// Expands amdgcn's arithmetic intrinsics for targets that lack them (rcp, fract, ubfe, ...); null for any other call.
llvm::Value* portable_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call);
// Throws error{unsupported} if the launch needs more shared memory than a workgroup of the GPU has.
void check_shared_memory(const llvm::Function& entry, const launch_site& launch, const lowering_target& target);
// Throws error{unsupported} for a function that is declared and used but that the target does not provide.
void refuse_leftovers(const llvm::Module& module, machine_kind kind);

}  // namespace kiln::spirv
