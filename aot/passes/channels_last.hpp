// Converts convolutions and poolings to channels_last, the only layout that kernels support. Images are transposed
// before and transposed back after; weights are transposed to [window..., C/G, F]. Constant folding then evaluates the
// transposes of the weights, and sink_transposes removes most of the others.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct channels_last {
  std::string_view name() const { return "channels_last"; }
  bool apply(module& m) const;
};

}  // namespace kiln
