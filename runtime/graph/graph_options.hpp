// The options for graph replay in one context, and the report about it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/graph/graph_decision.hpp"

namespace kiln {

enum class graph_policy : std::uint8_t {
  off,        // eager launches
  on,         // graphs are replayed; the first runs measure which graph order is faster
  automatic,  // the first runs alternate between eager launches and replay; the faster way is kept
};

// The order of independent steps in a graph.
enum class graph_order : std::uint8_t {
  measured,  // the faster of both
  chain,     // in sequence
  branches,  // concurrent where the plan's data dependences allow it
};

// How graphs are built (graph_maker).
enum class graph_making : std::uint8_t {
  fitting,  // nodes; capture for a segment with more than one foreign call
  nodes,
  capture,
};

struct graph_options {
  graph_policy policy = graph_policy::automatic;
  graph_order order = graph_order::measured;
  graph_making making = graph_making::fitting;
  // The number of graphs that are kept for each segment of a plan, each with its own pointers. A caller that alternates
  // between this many sets of tensors causes no patches. At least 1.
  unsigned most_graphs = 4;
  // An earlier decision of `automatic` for this program and device class. With it, nothing is measured.
  std::optional<graph_decision> decision = {};
};

struct graph_report {
  std::string mode = "off";  // off, measuring, eager, replay
  std::size_t captures = 0;  // graphs built, in either way
  std::size_t replays = 0;   // runs that launched graphs
  std::size_t patches = 0;   // nodes that got other pointers
  std::size_t updates = 0;   // graphs updated as a whole because a patch was refused
  std::size_t rebuilds = 0;  // graphs rebuilt because an update was refused
  std::size_t failures = 0;  // after the first failure all runs are eager
  std::size_t segments = 0;  // segments of the plan that run as graphs
  bool branches = false;     // whether the graphs in use have concurrent branches
  std::string reason;        // why runs are eager although a graph was requested
};

std::string_view name(graph_policy policy);  // "off", "on", "auto"
std::optional<graph_policy> graph_policy_named(std::string_view name);

}  // namespace kiln
