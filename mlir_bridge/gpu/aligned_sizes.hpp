// Open kernels whose code is faster if some open sizes are multiples of a few elements, because vectors are then loaded
// and stored where others take single elements.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::gpu {

using namespace codegen;

// Calls `emit` twice if one of `sizes`, those of the innermost axes of tensors, is open and not known to be a multiple
// of `elements`: once for sizes that are all multiples of it (kernel_emitter::multiples), and once for all others. The
// stages of each have no workgroups at the sizes of the other. Else calls it once. `among`: 1, or 0 at the sizes at
// which these stages are not needed because the others do as well. Inner anchors must have been emitted.
void emit_with_aligned_sizes(kernel_emitter& e, std::int64_t elements, const std::vector<dim>& sizes, const dim& among,
                             const std::function<void()>& emit);

}  // namespace kiln::gpu
