// Moves reshapes towards the outputs, through elementwise operations and through reductions, softmax and normalization
// over axes that the reshape leaves alone, so that a kernel's epilogue is not cut off by one, and so that they meet the
// next reshape and merge. Where an axis that is normalized or reduced was merged from several, the merge is undone
// first: a group normalization written as [N, C, H, W] → [N, G, K] becomes [N, G, C/G, H, W], which any layout can
// follow.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct sink_reshapes {
  std::string_view name() const { return "sink_reshapes"; }
  bool apply(module& m) const;
};

}  // namespace kiln
