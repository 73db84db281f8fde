// The LLVM passes for kernels that our own generators wrote. Such a kernel is one function and its body, already
// vectorized, with constant extents, so most passes of LLVM's O3 pipeline find nothing in it and cost more time than
// the rest of the finalization. This pipeline keeps those that change our kernels, once each; bench/README.md ("Compile
// time of kernels") has its time and the speed of its code beside O3's. Internal to back_ends.
#pragma once

#include "llvm/IR/PassManager.h"

namespace kiln::codegen {

// `unroll` adds the unrolling of loops, for generators that do not unroll themselves.
llvm::ModulePassManager kernel_pipeline(bool unroll);

}  // namespace kiln::codegen
