// Results whose size depends on data (NonZero, Unique, ...). Their kernels give the largest possible tensor and a
// count. During the import the size is a symbol, so that shapes, Shape and Reshape follow it through the graph; at the
// end of the import it becomes the largest size, and outputs that had the symbol become `counted` values
// (ir/ops/counted.hpp). What lies past the count is padding: so every operation in between must treat the places along
// such an axis one by one, or combine them in a way that padding can be masked for (counted_masks.hpp); others (a
// scatter, a sort) are refused by name.
#pragma once

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Refuses an input with open dimensions: the largest result is not known.
void need_known_dims(const shape& type);

// The first `count` (i64[1], of the module being built) along `axis` of a tensor without open dimensions, as a tensor
// with a symbol for that dimension; all tensors of one count share the symbol. Refuses in bodies of If and Loop.
value shortened(node& n, value data, std::int64_t axis, value count);

// Masks and checks the uses of all counts, adds each count that an output needs as an output "NAME.count", NAME being
// the first that needs it, and puts the largest sizes in place of the symbols.
void settle_counted_dims(import_state& state);

}  // namespace kiln::onnx_import
