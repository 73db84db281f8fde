// Resamples an axis whose size is open: the weight matrix (resize_weights.hpp) is computed at run time.
#pragma once

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/resize_weights.hpp"

namespace kiln::onnx_import {

// An axis of a Resize whose sizes may be symbolic. `axis.from` and `axis.to` are ignored; a scale of 0 means the ratio
// of the sizes. `scale`, an f32 scalar, takes the place of `axis.scale` if the model computes it from sizes.
struct open_resampling {
  resampling axis;
  dim from, to;
  value scale = {};
};

// Resamples the last axis of `x` (a float type): [..., from] becomes [..., to].
value resampled(node& n, value x, const resize& op, const open_resampling& how);

}  // namespace kiln::onnx_import
