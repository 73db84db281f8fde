// Makes equal computations one: same operation, same inputs; equal constants too. Constants are compared by type and
// size first and by bytes only then, so large weights are neither hashed nor copied.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct common_subexpressions {
  std::string_view name() const { return "common_subexpressions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
