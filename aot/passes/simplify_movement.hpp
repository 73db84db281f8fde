// Rewrites operations that move elements: chains are merged, operations that move nothing are removed, a gather with
// one constant index becomes a slice, and broadcasts are moved last.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct simplify_movement {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "simplify_movement"; }
  bool apply(module& m) const;
};

}  // namespace kiln
