// The operator Loop.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns the carried values after the last trip, then what the trips collect, stacked along a new axis 0.
std::vector<value> import_loop(node& n);

}  // namespace kiln::onnx_import
