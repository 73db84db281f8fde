// Products of the same operand with several constant weights become one product whose result is sliced: q, k and v;
// branches of a network that begin with the same kind of convolution. Elementwise operations that follow all of the
// products alike, with constants per column, follow the one product instead.
//
// A slice is not a launch where its reader can address the part (attention, normalizations, reductions). The products
// stay apart if copies of the slices and operations that lose their epilogue would take as many launches as are saved.
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
