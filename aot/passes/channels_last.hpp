// Puts convolutions and poolings into channels_last, the only layout that kernels know: images are transposed before
// and back after, weights are transposed to [window..., C/G, F]. Constant folding then does the weights,
// sink_transposes removes most of the rest.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct channels_last {
  std::string_view name() const { return "channels_last"; }
  bool apply(module& m) const;
};

}  // namespace kiln
