// GatedDeltaNet of onnxruntime: linear attention whose gates and normalization are part of the operator, and whose
// heads are axes of their own.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// inputs: query [tokens, heads, K], key, value [tokens, value heads, V], none, decay, beta, state [B, value heads, V,
// K], a_log, dt_bias. outputs: [tokens, value heads, V], state. The tokens are one axis or [B, T].
std::vector<value> gated_delta_net(node& n);

}  // namespace kiln::onnx_import
