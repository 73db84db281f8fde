// Packs buffers with known lifetimes into one allocation. Greedy best fit after Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference" (2020): the buffers are placed in some order of importance, each into the
// smallest gap between buffers that live at the same time. Several orders are tried and the smallest layout is kept.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

inline constexpr std::size_t arena_alignment = 64;

// Live from step `first` through step `last`, both inclusive. Buffers that share a step never share memory.
struct arena_request {
  std::size_t bytes = 0;
  std::int64_t first = 0, last = 0;
};

struct arena_layout {
  std::vector<std::size_t> offsets;  // per request, multiples of arena_alignment; 0 for empty ones
  std::size_t bytes = 0;             // size of the whole arena
  std::size_t sum = 0;               // sum of all request sizes, aligned: the size without sharing
  std::size_t lower_bound = 0;       // most bytes live at one step: no layout can be smaller
};

arena_layout pack_arena(std::span<const arena_request> requests);

}  // namespace kiln
