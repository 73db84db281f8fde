// The operator Slice, and parts of an axis.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns the slice. Starts and ends may be computed by the model: then its size depends on data (bounded_dims.hpp), or
// follows from the distance of the two.
std::vector<value> sliced(node& n);

// Returns adjacent parts of an axis, from its beginning on.
std::vector<value> parts_of(builder& b, value x, std::int64_t axis, const std::vector<dim>& lengths);
// The same for lengths that the model gives: throws, or adds a guard, unless they add up to the axis.
std::vector<value> split_into(node& n, value x, std::int64_t axis, const std::vector<dim>& lengths);

}  // namespace kiln::onnx_import
