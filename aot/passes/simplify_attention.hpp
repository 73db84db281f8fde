// Rewrites around attention: a transpose that swaps heads and positions becomes a layout of the operand or of the
// result, and a mask loses its broadcasts.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct simplify_attention {
  std::string_view name() const { return "simplify_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
