// The operator Slice.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns the slice. Starts and ends may be computed by the model: then its size depends on data (bounded_dims.hpp), or
// follows from the distance of the two.
std::vector<value> sliced(node& n);

}  // namespace kiln::onnx_import
