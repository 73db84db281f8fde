// Handles results whose size depends on data (NonZero, Unique, ...). Their kernels return a tensor of the largest
// possible size and a count. During the import a symbol stands for the size, so that Shape and Reshape propagate it
// through the graph. At the end of the import the symbol is replaced by the largest size, and outputs that contained
// the symbol become `bounded` values (ir/ops/bounded.hpp).
// Elements past the count are padding. Therefore every operation along such an axis must either work element by
// element, or be a combination for which padding can be masked (bounded_masks.hpp), or its handler deals with the
// padding (bounded_values.hpp). Other operations are refused by name.
#pragma once

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Masks and checks the uses of all counts, then replaces the symbols by the largest sizes. A count that an output needs
// becomes an additional output "NAME.count", where NAME is the first output that needs it.
void settle_bounded_dims(import_state& state);

}  // namespace kiln::onnx_import
