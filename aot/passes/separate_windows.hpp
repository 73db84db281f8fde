// Divides max pooling with large windows into one pooling for each axis: the maximum of the maxima of rows is the
// maximum of the window. Of a window of 9 × 9, 9 + 9 elements are read for a result instead of 81.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct separate_windows {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "separate_windows"; }
  bool apply(module& m) const;
};

}  // namespace kiln
