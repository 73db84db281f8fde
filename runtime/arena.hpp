// Packs buffers with known lifetimes into one allocation. Greedy best fit after Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference" (2020): the buffers are placed in some order of importance, each into the
// smallest gap between buffers that live at the same time. Several orders are tried and the smallest layout is kept.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kiln {

inline constexpr std::size_t arena_alignment = 64;
constexpr std::size_t arena_aligned(std::size_t bytes) {
  return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

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
// The sum and the lower bound of a layout of these requests; the rest is empty.
arena_layout arena_limits(std::span<const arena_request> requests);

// Packs sets of requests that often have the same lifetimes and other sizes. It keeps, for some layouts, which buffer
// each one lies on. A set with the same lifetimes is first laid out in these ways, which takes a tenth of the time; it
// is packed anew if buffers would overlap or the arena would be relatively larger. Used by one thread at a time.
class arena_packer {
 public:
  arena_layout pack(std::span<const arena_request> requests);

 private:
  struct placed_request {
    std::uint32_t request = 0, below = 0;  // the request whose end is this one's offset, or itself for offset 0
  };
  struct way {
    std::vector<placed_request> order;
    double ratio = 1;  // of the size to the lower bound
  };
  bool same_lifetimes(std::span<const arena_request> requests) const;
  bool lay_out(std::span<const arena_request> requests, const way& as, arena_layout& result) const;
  void keep(std::span<const arena_request> requests, const arena_layout& made);
  void find_pairs();

  std::vector<arena_request> lifetimes_;                        // their sizes do not matter
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;  // of requests that live at the same time
  std::vector<way> ways_;                                       // the last used first
};

}  // namespace kiln
