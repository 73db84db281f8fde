// Moves reshapes towards the outputs: through elementwise operations, and through reductions, softmax and normalization
// over axes that the reshape leaves alone. Then a reshape does not cut off a kernel's epilogue, and it meets the next
// reshape and merges with it. If a normalized or reduced axis was merged from several axes, the merge is undone first:
// a group normalization written as [N, C, H, W] → [N, G, K] becomes [N, G, C/G, H, W], which works with any layout.
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct sink_reshapes {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "sink_reshapes"; }
  bool apply(module& m) const;
};

}  // namespace kiln
