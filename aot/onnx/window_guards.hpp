// Open sizes for which a window of a convolution or pooling does not fit into its image. Fixed ones are refused by the
// operation itself (ir/ops/check.hpp).
#pragma once

#include <vector>

#include "aot/onnx/builder.hpp"

namespace kiln::onnx_import {

// Guards that each window of the operation, whose inputs have these shapes, lies within its image. Without, a window
// that does not fit would count as none, and what is computed from no pixels is NaN. Other operations have no windows.
void need_windows_to_fit(builder& b, const operation& op, const std::vector<shape>& shapes);

}  // namespace kiln::onnx_import
