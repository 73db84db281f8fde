// Rewrites elementwise operations: removes identities and redundant comparisons and conversions, merges constants along
// chains, and moves broadcasts behind the computation. Floating-point sums and products may be reassociated, as
// everywhere in Kiln.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct simplify_arithmetic {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "simplify_arithmetic"; }
  bool apply(module& m) const;
};

}  // namespace kiln
