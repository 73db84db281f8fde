// Control flow that the host's entries are built of. Internal to spirv/lowering.
#pragma once

#include <functional>

#include "llvm/IR/IRBuilder.h"

namespace kiln::spirv {

// Emits for (i32 n = from; n < to; ++n) body(n) at the end of the builder's block. The builder continues after the
// loop. `parallel` is an access group or null.
void loop(llvm::IRBuilder<>& b, llvm::Value* from, llvm::Value* to, const std::function<void(llvm::Value*)>& body,
          llvm::MDNode* parallel = nullptr);

// Emits if (condition) then(). The builder continues after it.
void when(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& then);

}  // namespace kiln::spirv
