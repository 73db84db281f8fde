// Rewrites around attention: a transpose that moves heads past positions becomes a layout of the operand or of the
// result, a mask loses its broadcasts.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct simplify_attention {
  std::string_view name() const { return "simplify_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
