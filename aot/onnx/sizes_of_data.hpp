// Sizes that data decide, and for which there is no bound: values that the main graph computes become symbols
// (ir/size_stages.hpp). Used where the import fails without them; then the sizes of NonZero and its kin are symbols of
// this kind, too, because operators need no masks for tensors of exact sizes.
#pragma once

#include <optional>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Whether the value `v` may become symbols: such symbols are wanted, and v is a small tensor of integers of a fixed
// shape. In the body of a Loop of the main graph the symbols are counts (bounded_dims.hpp), whose bounds are sizes that
// data decide (trip_bounds.hpp).
bool may_decide_sizes(const node& n, value v);

// Returns the elements of `v`. What the import knows about the values from which v follows by simple integer arithmetic
// is used; the others become symbols, whose names contain `name`, the tensor's name in the model. Returns nullopt where
// may_decide_sizes() is false, or a number in a body has no bound.
std::optional<known_elements> elements_of_data(const node& n, value v, const std::string& name);

// Returns the size that the number `count`, i64[1] of the main module, has when the model runs; nullopt where
// may_decide_sizes() is false, or the node belongs to a body.
std::optional<dim> size_of_data(const node& n, value count);

// Marks the first output of the main module with the symbols that occur in it. Called before dead code is erased.
void mark_sizes_of_data(import_state& state);

}  // namespace kiln::onnx_import
