// What the condition of a Loop says about its trips, where it compares a carried index that changes by a constant in
// each trip: `while index < limit` as onnxscript, torch.jit.script, tf2onnx (Keras's recurrent layers) and paddle2onnx
// write it, alone or as a part of a conjunction (`index < limit and not done`).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// A carried integer: `start + step * trip`, where the first trip is 0.
struct induction {
  dim start;
  std::int64_t step = 0;

  dim at(const dim& trip) const { return start + trip * dim(step); }
};

// The loop goes on after `trips` trips only if `start - trips * step` is positive. `step` is positive.
struct countdown {
  dim start;
  std::int64_t step;

  // The number of trips after which the countdown ends a loop that makes at least `least` trips (0 or 1).
  dim trips(const dim_facts& facts, std::int64_t least) const;
};

struct loop_condition {
  std::map<std::size_t, induction> inductions;  // by position among the carried values
  std::vector<countdown> countdowns;
  // Whether the loop goes on if all countdowns allow it. Otherwise, other things may end it, too.
  bool complete = false;

  // Imports the parts of the body that compute indices and limits on trial; nothing of them stays.
  static loop_condition read(node& n, const ::onnx::GraphProto& body);
};

// A comparison of two known numbers holds if and only if the result is positive. nullopt for other operations.
std::optional<dim> compared_numbers(const builder& b, value comparison);

}  // namespace kiln::onnx_import
