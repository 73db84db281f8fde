// Replaces max pooling of a dequantized tensor by max pooling of the 8-bit tensor. This is exact because a positive
// scale preserves the order.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct integer_pooling {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "integer_pooling"; }
  bool apply(module& m) const;
};

}  // namespace kiln
