// Values of any number of bits as words of 32 bits, which is what lanes exchange. Internal to spirv/lowering.
#pragma once

#include <functional>

#include "llvm/IR/IRBuilder.h"

namespace kiln::spirv {

// Applies `exchange` to each word of `v`, an integer or a floating-point number, and puts the results together. Throws
// error{unsupported} for other types.
llvm::Value* word_by_word(llvm::IRBuilder<>& b, llvm::Value* v,
                          const std::function<llvm::Value*(llvm::Value*)>& exchange);

}  // namespace kiln::spirv
