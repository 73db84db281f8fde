// A program in which kernels that serve many sizes have taken the place of the portable ones.
#pragma once

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"
#include "session/ranged_kernels.hpp"

namespace kiln {

// Returns a clone of `portable`, whose dims are open, with native code objects: the kernels of `kernels` that serve all
// sizes, and compiled ones where no dim is open. Others stay portable: they serve one set of sizes only. Throws what
// compile_bytecode throws. `kernels` are finalized; `report` (may be null) gets what is compiled besides.
//
// `exact` are dims that have one value in the result. A kernel whose other dims are static is compiled for it, and on
// GPUs any other kernel is compiled for it and all values of its other dims. The result has the symbols of `portable`;
// the ranges of those in `exact` are their values.
program general_program(const program& portable, const ranged_kernels& kernels, const jit_options& options,
                        jit_report* report = nullptr, const dim_bindings& exact = {});

}  // namespace kiln
