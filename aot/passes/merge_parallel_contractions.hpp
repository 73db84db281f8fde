// Replaces a sum of convolutions of the same image by one convolution whose weights are the sum of their weights in a
// common window. Examples are the training-time branches of RepVGG, MobileOne and RepViT. A branch that only scales the
// channels (a batch normalization of the identity) counts as a convolution with a window of one element. Sums of matrix
// products of the same rows are merged likewise.
//
// Runs on channels_first convolutions, after factors and batch normalizations have been folded into the weights.
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
