// ONNX Resize along one axis: which input elements an output element mixes, and with which weights. Resize is
// separable, so one axis is enough. A code generator may tabulate the taps for static shapes.
#pragma once

#include <vector>

#include "ir/ops/movement.hpp"

namespace kiln::reference {

struct resize_tap {
  std::int64_t index;  // within the input axis
  double weight;
};

// The taps of each of `out` elements along an axis of `in` elements: 1 for nearest, at most 2 for linear, 4 for cubic.
// Coordinates are computed in f32 as in ONNX Runtime, so that both select the same neighbours.
std::vector<std::vector<resize_tap>> resize_taps(const resize& op, double scale, std::int64_t in, std::int64_t out);

}  // namespace kiln::reference
