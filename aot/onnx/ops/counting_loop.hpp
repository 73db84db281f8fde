// Loops written as `while index < limit`, as onnxscript writes them: without a trip count, with a carried index that
// grows by 1, and with a condition that compares it. Their trips are known before the run.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The same Loop with a trip count and without a condition of its own.
struct counting_loop {
  ::onnx::NodeProto proto;
  std::vector<value> inputs;

  // Returns nullopt if the condition is of another form.
  static std::optional<counting_loop> find(node& n, const ::onnx::GraphProto& body);
};

}  // namespace kiln::onnx_import
