// Handles operations that combine elements along a bounded axis (bounded_dims.hpp): padding past the count is replaced
// by the neutral element. Internal to the import.
#pragma once

#include <set>
#include <span>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Masks the inputs of sum, product, min, max, mean, arg-max, softmax, top-k, running sum and matrix product over
// bounded axes; if `masks_windows`, also those of convolution and pooling. Returns the instruction that replaces `i` (a
// mean becomes a sum and a division). Returns null for every other operation, and if the element type has no neutral
// element. `i` must belong to `m`.
instruction* mask_padding(module& m, instruction& i, std::span<const bounded_dim> counts, bool masks_windows);

// Replaces a reshape that moves padding between valid elements by a gather of the valid elements. Returns the
// instructions that deal with padding.
std::set<const instruction*> reshape_valid(const import_state& state, module& m, instruction& i,
                                           std::span<const bounded_dim> counts);

}  // namespace kiln::onnx_import
