// Imports a Loop whose carried values grow by the same number of elements in each trip (as the tokens of a text
// generator do), or that collects values over a number of trips known only at run time. Each such value has a buffer
// large enough for all trips. The index of the trip determines how much of the buffer is valid (bounded_dims.hpp).
// Where trips add different sizes, what is valid is counted, and the buffer is large enough for the largest size in
// each.
#pragma once

#include <vector>

#include "aot/onnx/ops/body_module.hpp"

namespace kiln::onnx_import {

// The operands of a Loop, with defaults for a missing trip count and condition, and the numbers of its carried values
// and of the body's outputs.
struct loop_parts {
  value trips, condition;
  std::size_t carried, outputs;
};

// Returns true if the body never exits early: its condition output is its condition input or the constant true.
bool never_stops(const body_module& body, value condition);

// Imports `graph` as the body without changing it. Throws value_needed if there is no bound on the number of trips.
std::vector<value> growing_loop(node& n, const ::onnx::GraphProto& graph, const loop_parts& parts);

}  // namespace kiln::onnx_import
