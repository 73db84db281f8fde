// The positions of the maxima of a pooling, the second result of MaxPool.
#pragma once

#include "aot/onnx/node.hpp"
#include "ir/ops/reduction.hpp"

namespace kiln::onnx_import {

// The index of each maximum of `op`, a maximum pooling of input 0, in the flattened input; i64 with the dims of the
// result, `result`. The first of equal elements counts. storage_order=1 counts the spatial axes in column-major order.
value max_positions(node& n, const pooling& op, const std::vector<dim>& result);

}  // namespace kiln::onnx_import
