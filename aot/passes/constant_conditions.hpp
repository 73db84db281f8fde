// Replaces an `if` with a constant condition by the body that is taken.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct constant_conditions {
  std::string_view name() const { return "constant_conditions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
