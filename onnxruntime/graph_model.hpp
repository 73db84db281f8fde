// Nodes of an ONNX Runtime graph as an ONNX model of their own, for the compiler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnxruntime/api.hpp"

namespace kiln::ort {

struct graph_model {
  std::string bytes;  // a ModelProto; its large tensors lie in the file `data_file` beside it
  // The contents of that file, one after another. The graph owns them.
  std::vector<std::string_view> data;
  // Names of the inputs and outputs of a run. Constants are inside the model.
  std::vector<std::string> inputs, outputs;
};

// `nodes` are nodes of `graph` in its order. Throws std::runtime_error with the reason if the model cannot say what
// they are (a tensor of text, a value that is no tensor, an input whose rank is unknown).
graph_model model_of(const OrtGraph* graph, std::span<const OrtNode* const> nodes, const std::string& data_file);

}  // namespace kiln::ort
