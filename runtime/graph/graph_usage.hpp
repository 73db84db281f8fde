// How many graphs a device has, and how much memory they take. Graphs live in many contexts, which are made for sizes,
// callers and sets of tensors, so their memory is bounded for the device as a whole: a context makes only the graphs
// that it cannot do without while there is too much of it, and a session drops the sizes that were used the longest
// ago.
#pragma once

#include <cstddef>

namespace kiln {

class device;

struct graph_usage {
  std::size_t graphs = 0;  // ready to be launched, in contexts or kept for later ones
  // Memory of the device that the driver keeps for them. Drivers do not say how much that is, so this is an estimate
  // from the numbers of nodes.
  std::size_t bytes = 0;
};

inline constexpr std::size_t most_graph_bytes = std::size_t{256} << 20;

// Zeros for a device without graphs. Any thread. Implemented in runtime/gpu_device.cpp.
graph_usage graphs_of(const device& of);

inline bool has_too_many_graphs(const device& of) { return graphs_of(of).bytes > most_graph_bytes; }

}  // namespace kiln
