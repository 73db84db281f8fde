// An `if` whose condition is constant becomes the body that it takes.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct constant_conditions {
  std::string_view name() const { return "constant_conditions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
