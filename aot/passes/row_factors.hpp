// Moves the factors of a root-mean-square normalization into the weights of the products that read it: norm(x) * g · W
// becomes norm(x) · W', where row i of W' is row i of W times g[i]. A product of few rows can then read x itself and
// scale its sums (aot/kernels/joined_anchors.hpp). For 16-bit floats, where the product is rounded once, as the factor
// of x was before.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct row_factors {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "row_factors"; }
  bool apply(module& m) const;
};

}  // namespace kiln
