// What must hold at run time for an open kernel to stay within its tensors. Shape rules (ir/ops) are complete for
// static sizes. With open dimensions they accept what may be right: a slice of m of n elements, a reshape from n to m.
// A portable kernel compiled for its sizes is checked by the rules again; an open kernel runs at any sizes, so its
// conditions go with it. Needs no MLIR. Pure; any thread.
#pragma once

#include <vector>

#include "ir/module.hpp"

namespace kiln::codegen {

// Returns true if `d` is not negative for all values of its symbols, which are sizes and so never negative.
bool never_negative(const dim& d);

// One expression for each condition of the fusion that does not hold for all sizes: 0 where it holds, and otherwise a
// number that does not fit into 32 bits. So they are among native_kernel::bounded_sizes, and a kernel does not serve
// sizes for which one of them does not hold.
std::vector<dim> open_checks(const module& fusion);

}  // namespace kiln::codegen
