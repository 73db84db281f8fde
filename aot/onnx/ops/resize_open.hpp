// Resampling of one axis whose size is open: the matrix of weights (resize_weights.hpp) is computed when the model
// runs.
#pragma once

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/resize_weights.hpp"

namespace kiln::onnx_import {

// An axis of a Resize with sizes that may be symbolic. `axis.from` and `axis.to` are not read; a scale of 0 stands for
// the ratio of the sizes.
struct open_resampling {
  resampling axis;
  dim from, to;
};

// Resamples the last axis of `x`, which is of a float type: [..., from] to [..., to].
value resampled(node& n, value x, const resize& op, const open_resampling& how);

}  // namespace kiln::onnx_import
