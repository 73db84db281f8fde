// A Loop whose carried values grow by the same number of elements in each trip, as generated tokens do, or that
// collects values over a number of trips that only the run knows. The values lie in buffers for all trips; the number
// of the trip tells how much of them is valid (bounded_dims.hpp).
#pragma once

#include <vector>

#include "aot/onnx/ops/body_module.hpp"

namespace kiln::onnx_import {

// The operands of a Loop, with defaults for the trip count and the condition, and the numbers of its values.
struct loop_parts {
  value trips, condition;
  std::size_t carried, outputs;
};

// Whether the body never exits early: its condition output is its condition input or constant true.
bool never_stops(const body_module& body, value condition);

// Imports `graph`, which is not changed, as the body. Throws value_needed if the number of trips is not known.
std::vector<value> growing_loop(node& n, const ::onnx::GraphProto& graph, const loop_parts& parts);

}  // namespace kiln::onnx_import
