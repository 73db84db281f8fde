// The operator If. A branch that is known at import is imported in place; otherwise both branches are kept, and the
// condition selects one at run time.
#pragma once

#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Throws error{unsupported} if the branches cannot both be kept and the condition is not known at import.
std::vector<value> import_if(node& n);

}  // namespace kiln::onnx_import
