// Rewrites dot, convolution, pooling and reduce: transposes become flags, batches that share their weights become rows,
// constant factors are multiplied into weights (batch normalization is imported as such a factor and a bias), padding
// is merged into convolutions, and poolings of the whole image become reductions.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct simplify_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "simplify_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
