// Open kernels whose results are sums (or products, extremes) over a number of elements that is 0 at some sizes.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::gpu {

using namespace codegen;

// Calls `emit`, which emits the stages of the anchor. `count` is the number of elements of a sum. Where it can be 0 and
// there are results all the same, these stages have no workgroups at such sizes, because generators read ahead and at
// clamped positions. Another stage then stores `nothing()`, the value of every result. Inner anchors must have been
// emitted.
void emit_with_empty_sums(kernel_emitter& e, const dim& count, const std::function<Value()>& nothing,
                          const std::function<void()>& emit);
// The same for a result of 0.
void emit_with_empty_sums(kernel_emitter& e, const dim& count, const std::function<void()>& emit);

}  // namespace kiln::gpu
