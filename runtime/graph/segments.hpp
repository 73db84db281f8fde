// A plan cut into the parts that can be graphs: runs of steps of one block between which the host has nothing to decide
// or to read. For each part: which steps must wait for which, by the memory that they read and write, and which steps
// use a pointer that may be another one on the next run. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.hpp"

namespace kiln {

// A pointer (an input, an output, a loop's moving buffer) or a loop's trip, and the nodes that it is a part of.
struct graph_slot {
  bool is_counter = false;
  std::uint32_t index = 0;           // buffer_id, or of plan::counters
  std::vector<std::uint32_t> nodes;  // increasing
};

struct graph_segment {
  std::uint32_t block = 0, first = 0, count = 0;  // steps; node i is step first + i
  std::vector<std::vector<std::uint32_t>>
      after;  // per node: the nodes that it waits for, no more than the data and the lanes need
  std::vector<graph_slot> slots;
  std::size_t calls = 0;  // nodes that are not ours
  bool branches = false;  // not all nodes wait for the one before them
};

// Shorter parts are not worth a graph: one launch is as fast by itself.
inline constexpr std::size_t least_graph_steps = 2;
// Steps that run side by side at most. Wider graphs cost the host more than they gain, and at last the device too:
// llama_decode_fp16 on the H200 takes 308, 276, 259, 259, 256 and 265 us with 1, 2, 3, 4, 8 and 64 lanes, bert_base
// 401, 369, 342, 340, 341 and 341, and of the host llama takes 8 us with 4 and 24 with 64 (bench/README.md).
inline constexpr std::size_t most_lanes = 4;

std::vector<graph_segment> cut_segments(const plan& of);

}  // namespace kiln
