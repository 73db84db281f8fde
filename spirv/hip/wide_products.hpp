// Splits 128-bit products of which only 64 bits are used. LLVM creates them from common ways of computing the upper
// half of a product (hashes, random numbers), but its SPIR-V back end does not support 128-bit integers. Includes LLVM
// headers: for this folder's .cpp files only.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln::spirv {

// Other 128-bit arithmetic is left alone; the back end rejects it.
void split_wide_products(llvm::Function& function);

}  // namespace kiln::spirv
