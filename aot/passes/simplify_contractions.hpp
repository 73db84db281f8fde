// Rewrites dot, convolution, pooling and reduce: transposes become flags, batches without weights of their own become
// rows, constant factors go into weights (batch normalization after import is such a factor and a bias), padding goes
// into convolutions, poolings of the whole image become reductions.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct simplify_contractions {
  std::string_view name() const { return "simplify_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
