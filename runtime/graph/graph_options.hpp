// How a context runs a plan on a device with graphs, and what came of it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/graph/graph_decision.hpp"

namespace kiln {

enum class graph_policy : std::uint8_t {
  off,        // every launch is made by itself
  on,         // graphs are replayed; of two orders the first runs find the faster
  automatic,  // the first runs are timed in turn with and without; the faster way is kept
};

// The graph of independent steps.
enum class graph_order : std::uint8_t {
  measured,  // the faster of both
  chain,     // one after the other
  branches,  // side by side where the plan's data allows
};

// Which maker a graph is made by.
enum class graph_making : std::uint8_t {
  fitting,  // nodes; capture for what holds more than one call that is not ours
  nodes,
  capture,
};

struct graph_options {
  graph_policy policy = graph_policy::automatic;
  graph_order order = graph_order::measured;
  graph_making making = graph_making::fitting;
  // Graphs with pointers of their own that are kept for each part of a plan, so that callers who take turns with a few
  // sets of tensors change nothing; at least 1.
  unsigned most_graphs = 4;
  // What `automatic` decided before, for this program on such a device: nothing is measured.
  std::optional<graph_decision> decision = {};
};

struct graph_report {
  std::string mode = "off";  // off, measuring, eager, replay
  std::size_t captures = 0;  // graphs made, by either maker
  std::size_t replays = 0;   // runs that launched graphs
  std::size_t patches = 0;   // nodes that were given other pointers
  std::size_t updates = 0;   // graphs updated as a whole, where a patch was refused
  std::size_t rebuilds = 0;  // graphs made again, where an update was refused
  std::size_t failures = 0;  // after the first, runs are eager for good
  std::size_t segments = 0;  // parts of the plan that are graphs
  bool branches = false;     // of the graphs in use
  std::string reason;        // why runs are eager where a graph was wanted
};

std::string_view name(graph_policy policy);  // "off", "on", "auto"
std::optional<graph_policy> graph_policy_named(std::string_view name);

}  // namespace kiln
