// Loops that collect tensors in sequences, as scripted recurrent models do: each trip appends one tensor, and the
// number of trips is not known at import. The body then returns the tensor, which the Loop collects along a new axis,
// and the sequence is that one tensor (compound::stacked). Where the tensors have different sizes along an axis, the
// import of the Loop appends them along that axis (growing_loop.hpp; compound::joined).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The Loop without the sequences that it only appends to.
class collected_sequences {
 public:
  // Returns nullopt if the loop carries sequences that it uses in another way.
  static std::optional<collected_sequences> find(node& n, const ::onnx::GraphProto& body);

  // An attribute of the Loop: how many of its results, at the end, are the parts of sequences.
  static constexpr std::string_view parts_attribute = "kiln.parts";

  ::onnx::NodeProto& proto() { return proto_; }
  const std::vector<value>& inputs() const { return inputs_; }
  // Returns the results of the original Loop, given those of the Loop without sequences.
  std::vector<value> results(node& n, const std::vector<value>& made) const;

 private:
  ::onnx::NodeProto proto_;
  std::vector<value> inputs_;
  std::vector<std::size_t> sequences_;  // positions among the carried values
  std::size_t carried_ = 0;             // values that the original Loop carries
};

// Changes the body of a Loop with this many carried values: result `scan` of those behind them is no longer collected,
// but appended along an axis to another carried value, the last one.
void append_part(::onnx::GraphProto& body, std::size_t carried, std::size_t scan, std::size_t axis);

}  // namespace kiln::onnx_import
