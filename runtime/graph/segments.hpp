// Cuts a plan into segments that can run as graphs: consecutive steps of one block between which the host neither
// decides nor reads anything. Each segment lists the dependences between its steps (from the memory that they read and
// write) and the steps whose pointers may change from run to run. Pure; any thread may call it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.hpp"

namespace kiln {

// A pointer (of an input, an output or a loop's moving buffer) or a loop's trip counter, and the nodes that use it.
struct graph_slot {
  bool is_counter = false;
  std::uint32_t index = 0;           // buffer_id, or of plan::counters
  std::vector<std::uint32_t> nodes;  // increasing
};

struct graph_segment {
  std::uint32_t block = 0, first = 0, count = 0;  // steps; node i is step first + i
  std::vector<std::vector<std::uint32_t>> after;  // per node: its direct predecessors, without redundant edges
  std::vector<graph_slot> slots;
  std::size_t calls = 0;  // nodes that are foreign calls
  bool branches = false;  // some node does not depend on the node before it
};

// Shorter segments do not become graphs: a graph with one launch is not faster than the launch.
inline constexpr std::size_t least_graph_steps = 2;
// The maximum number of steps that run concurrently. Wider graphs cost the host more than they gain, and at last the
// device too: llama_decode_fp16 on the H200 takes 308, 276, 259, 259, 256 and 265 us with 1, 2, 3, 4, 8 and 64 lanes,
// bert_base 401, 369, 342, 340, 341 and 341, and of the host llama takes 8 us with 4 and 24 with 64 (bench/README.md).
inline constexpr std::size_t most_lanes = 4;

// `orders`: whether `after` and `branches` are wanted, which takes longer than the rest.
std::vector<graph_segment> cut_segments(const plan& of, bool orders = true);

}  // namespace kiln
