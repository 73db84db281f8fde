// Anchors: the operations that have a generator of their own, of which a kernel holds at most one
// (docs/architecture.md).
#pragma once

#include <string_view>

#include "ir/module.hpp"

namespace kiln::codegen {

// Everything that the evaluator cannot inline: dot, convolution, reduce, softmax, ...
bool is_anchor(const operation& op);

// The cluster's anchor; null for a map cluster. Throws error{internal} where there are two.
const instruction* find_anchor(const module& cluster, std::string_view symbol);

}  // namespace kiln::codegen
