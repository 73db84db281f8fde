// Replaces several products of one operand with constant weights by one product, whose result is sliced. Examples: the
// projections q, k and v; branches of a network that begin with the same kind of convolution. Elementwise operations
// with per-column constants that follow all of the products are applied once, to the joined product.
//
// A slice needs no launch if its reader can address a part of a tensor (attention, normalizations, reductions). The
// products are not joined if copies of slices and operations that no longer fuse would cost as many launches as are
// saved.
#pragma once

#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

struct fuse_horizontally {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "fuse_horizontally"; }
  bool apply(module& m) const;
};

}  // namespace kiln
