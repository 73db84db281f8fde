// Merges equal computations (same operation, same inputs) and equal constants. Constants are compared by type and size
// first and by bytes only then. Only the leading bytes are hashed, and nothing is copied, so large weights are cheap.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct common_subexpressions {
  std::string_view name() const { return "common_subexpressions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
