// Finds normalizations that a model writes out: (x - mean) / sqrt(variance + epsilon), and x / sqrt(mean(x²) +
// epsilon).
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct recognize_normalization {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "recognize_normalization"; }
  bool apply(module& m) const;
};

}  // namespace kiln
