// The result of the policy `auto` for one program on one device: whether graph replay is faster than eager launches. A
// plain value: tuning records store it under the program's hash and the device class, and a later process that passes
// it as graph_options::decision (executable::make_context) measures nothing. execution_context::decision() returns it
// once it is made.
#pragma once

namespace kiln {

struct graph_decision {
  bool replay = false;    // false: eager launches
  bool branches = false;  // with replay: independent steps may run concurrently; false: in sequence
  double eager_ms = 0,
         replay_ms = 0;  // median times of a run; replay_ms is that of the faster graph order. 0: not measured
  friend bool operator==(const graph_decision&, const graph_decision&) = default;
};

}  // namespace kiln
