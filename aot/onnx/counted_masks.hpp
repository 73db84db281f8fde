// Operations that combine the places along a counted axis (counted_dims.hpp): what lies past the count is replaced by
// what changes nothing. Internal to the import.
#pragma once

#include <span>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Sums, products, largest and smallest elements, means, arg-max, softmax and running sums over counted axes: masks
// their input, and returns the instruction that stands in the place of `i` afterwards (a mean becomes a sum and a
// division). Null for every other operation, and where no value of the element type changes nothing. Only for
// instructions of the main module.
instruction* mask_padding(module& main, instruction& i, std::span<const counted_dim> counts);

}  // namespace kiln::onnx_import
