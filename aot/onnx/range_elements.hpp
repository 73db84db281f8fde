// Elements of a range of open length that known indices choose, such as torch.arange(n)[0].
#pragma once

#include <optional>

#include "aot/onnx/builder.hpp"

namespace kiln::onnx_import {

// Returns the elements of `vector` at the indices if `vector` is computed from the numbers 0, 1, 2, ... by sums,
// differences and products with one number, by slices and by joining with others. Its length may be open. Otherwise
// returns nullopt.
std::optional<known_elements> elements_of_range(const builder& b, value vector, const known_elements& indices);

}  // namespace kiln::onnx_import
