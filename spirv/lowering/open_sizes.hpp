// Numbers that an entry reads from its kernel's table of sizes (ir/native_kernel.hpp), because they depend on open
// dims. Internal to spirv/lowering.
#pragma once

#include <cstddef>
#include <cstdint>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "spirv/lowering/lowering.hpp"

namespace kiln::spirv {

// Reads the number at `place`, i64.
llvm::Value* size_at(llvm::IRBuilder<>& b, llvm::Value* table, std::uint32_t place);

// The size of the grid in a dimension, i32. `table` may be null if the grid has no open sizes.
llvm::Value* grid_size(llvm::IRBuilder<>& b, const launch_site& launch, std::size_t dimension, llvm::Value* table);

// Replaces the loads through HIP's implicit arguments that read open sizes of the grid. Throws error{unsupported} if
// the pointer is used in another way than by loads of its fields.
void read_open_grid(llvm::CallInst& implicit_arguments, const launch_site& launch, llvm::Value* table);

}  // namespace kiln::spirv
