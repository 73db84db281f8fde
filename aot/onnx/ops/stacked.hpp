// Sequences of tensors of one shape as one tensor, whose first axis counts the elements.
#pragma once

#include "aot/onnx/node.hpp"
#include "aot/onnx/sequences.hpp"

namespace kiln::onnx_import {

// Stacks tensors of equal shape along a new axis.
value stacked(builder& b, const std::vector<value>& elements, std::int64_t axis);
// Returns the elements of a sequence along a new first axis. Refuses sequences whose elements have different shapes.
value stacked(node& n, const compound& sequence);
// Joins two stacked sequences.
value appended(node& n, value first, value second);

}  // namespace kiln::onnx_import
