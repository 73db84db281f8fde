// Rewrites elementwise operations: identities, constants merged along chains, broadcasts moved behind what is computed,
// comparisons and conversions that say nothing. Floating-point sums and products may be reassociated, as everywhere in
// Kiln.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct simplify_arithmetic {
  std::string_view name() const { return "simplify_arithmetic"; }
  bool apply(module& m) const;
};

}  // namespace kiln
