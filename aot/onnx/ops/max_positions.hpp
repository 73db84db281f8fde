// Positions of the maxima of a pooling (the second output of MaxPool).
#pragma once

#include "aot/onnx/node.hpp"
#include "ir/ops/reduction.hpp"

namespace kiln::onnx_import {

// Returns the index of each maximum of `op`, a maximum pooling of input 0, in the flattened input. The result is i64
// with the dims `result`. Of equal elements, the first is chosen. With storage_order=1 the spatial axes are flattened
// in column-major order.
value max_positions(node& n, const pooling& op, const std::vector<dim>& result);

}  // namespace kiln::onnx_import
