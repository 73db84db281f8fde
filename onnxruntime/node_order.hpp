// The nodes of a graph, in an order in which each comes after those that it reads from. ONNX Runtime gives an order of
// its own; this is that of the model's file as far as possible, which is the order that `kiln compile` sees: kernels
// then run in the same order, and take the same time.
#pragma once

#include <vector>

#include "onnxruntime/api.hpp"

namespace kiln::ort {

std::vector<const OrtNode*> nodes_of(const OrtGraph* graph);

}  // namespace kiln::ort
