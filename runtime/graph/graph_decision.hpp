// What `auto` found out about one program on one device: whether replaying a graph is faster than making every launch.
// A plain value, so that it can be kept (tuning records, by the program's hash and the class of the device) and given
// to a later process, which then measures nothing: graph_options::decision takes it (executable::make_context),
// execution_context::decision() gives it once it is made.
#pragma once

namespace kiln {

struct graph_decision {
  bool replay = false;    // otherwise every launch is made by itself
  bool branches = false;  // with replay: independent steps may run side by side; otherwise one after the other
  double eager_ms = 0,
         replay_ms = 0;  // medians of a run; replay_ms of the better of both kinds of graph. 0: not measured
  friend bool operator==(const graph_decision&, const graph_decision&) = default;
};

}  // namespace kiln
