// A sum of convolutions of the same image becomes one convolution, whose weights are the sum of theirs in a common
// window: the branches of RepVGG, MobileOne and RepViT as they are trained. A branch that only scales the image's
// channels (a batch normalization of the identity) counts as a convolution with a window of one element. Matrix
// products of the same rows are summed likewise.
//
// Runs on channels_first convolutions, after factors and batch normalizations have gone into the weights.
#pragma once

#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

struct merge_parallel_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "merge_parallel_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
