// Loops that append, in each trip, a tensor that is repeated along one axis as often as data say: repeat_interleave as
// TorchScript exports it. The loop then collects the tensors before they are repeated, and what is appended becomes
// one gather (compound::joined).
#pragma once

#include <optional>
#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The Loop that collects the tensors and the shapes to which they are expanded.
class repeated_pieces {
 public:
  // Returns nullopt if the loop does something else, or if the shapes do not contain a number that the body computes.
  static std::optional<repeated_pieces> find(node& n, const ::onnx::GraphProto& body);

  ::onnx::NodeProto& proto() { return proto_; }
  const std::vector<value>& inputs() const { return inputs_; }
  // Returns the results of the original Loop, given those of the Loop without the sequence.
  std::vector<value> results(node& n, const std::vector<value>& made) const;

 private:
  ::onnx::NodeProto proto_;
  std::vector<value> inputs_;
  std::size_t sequence_ = 0, carried_ = 0;  // its position among the carried values, and their number
  // For each axis of the shape, whether the body computes it.
  std::vector<bool> computed_;
  // The Reshape behind the Expand, and the axis whose size it computes; not set if there is none.
  std::optional<::onnx::NodeProto> reshape_;
  std::vector<std::int64_t> reshaped_;
};

}  // namespace kiln::onnx_import
