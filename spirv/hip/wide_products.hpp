// Products of 128 bits, of which a source asked for 64: LLVM finds them in the usual ways of writing "the upper half of
// a product" (hashes, random numbers), and its SPIR-V back end has no such integers. LLVM headers: for this folder's
// .cpp files only.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln::spirv {

// What is left over (other arithmetic of 128 bits) the back end refuses.
void split_wide_products(llvm::Function& function);

}  // namespace kiln::spirv
