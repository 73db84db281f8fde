// Rewrites around attention: a transpose that swaps heads and positions becomes a layout of the operand or of the
// result, and a mask loses its broadcasts.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct simplify_attention {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "simplify_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
