// Handles results whose size depends on data (NonZero, Unique, ...). Their kernels return a tensor of the largest
// possible size and a count. During the import a symbol stands for the size, so that Shape and Reshape propagate it
// through the graph. At the end of the import the symbol is replaced by the largest size, and outputs that contained
// the symbol become `bounded` values (ir/ops/bounded.hpp).
// Elements past the count are padding. Therefore every operation along such an axis must either work element by
// element, or be a combination for which padding can be masked (bounded_masks.hpp). Other operations (a scatter, a
// sort) are refused by name.
#pragma once

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Refuses an input with symbolic dims, because the largest size of the result would be unknown.
void need_known_dims(const shape& type);

// Returns the first `count` elements of `data` along `axis`. `count` is i64[1] and belongs to the module being built;
// `data` must have static dims. The result has a symbol for that dimension, and all tensors with the same count share
// the symbol. Refused in bodies of If and Loop.
value shortened(node& n, value data, std::int64_t axis, value count);

// Masks and checks the uses of all counts, then replaces the symbols by the largest sizes. A count that an output needs
// becomes an additional output "NAME.count", where NAME is the first output that needs it.
void settle_bounded_dims(import_state& state);

}  // namespace kiln::onnx_import
