// The LLVM passes for kernels that our own generators wrote. A stage of such a kernel is one function that is already
// vectorized and tiled, with constant extents, and whose pointers are noalias, so most passes of LLVM's O3 pipeline
// find nothing in it and cost more time than the rest of the finalization. This pipeline keeps those that change our
// kernels: loops of few iterations are unrolled completely, others are kept, and nothing is inlined: at the end the
// code of a stage moves into the exported function that calls it. bench/README.md ("Compile time of kernels") has its
// time and the speed of its code. Internal to back_ends.
#pragma once

#include "llvm/IR/PassManager.h"

namespace kiln::codegen {

llvm::ModulePassManager kernel_pipeline();

}  // namespace kiln::codegen
