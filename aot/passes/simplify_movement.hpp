// Rewrites operations that move elements: chains become one, what moves nothing disappears, a gather with one constant
// index becomes a slice, a broadcast comes last.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct simplify_movement {
  std::string_view name() const { return "simplify_movement"; }
  bool apply(module& m) const;
};

}  // namespace kiln
