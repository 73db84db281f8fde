// Max pooling of a dequantized tensor becomes max pooling of the 8-bit tensor: a positive scale keeps the order.
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
