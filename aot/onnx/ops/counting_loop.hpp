// Loops written as `while index < limit`, as onnxscript, torch.jit.script and tf2onnx (Keras's recurrent layers) write
// them: a carried index changes by a constant in each trip, and the condition compares it with a number that is known at
// import. Their trips are known before the run.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The same Loop with a trip count and without a condition of its own.
struct counting_loop {
  ::onnx::NodeProto proto;
  std::vector<value> inputs;

  // Returns nullopt if the condition is of another form, or the trip count is not known at import.
  static std::optional<counting_loop> find(node& n, const ::onnx::GraphProto& body);
};

}  // namespace kiln::onnx_import
