// Loops that only their condition ends, whose trips are known before the run because the condition counts them
// (loop_condition.hpp).
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
