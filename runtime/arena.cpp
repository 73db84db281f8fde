#include "runtime/arena.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace kiln {
namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment; }

// Placement order: whether `a` is placed before `b`.
using precedes = bool (*)(const arena_request& a, const arena_request& b);
constexpr precedes orders[] = {
    [](const arena_request& a, const arena_request& b) { return a.bytes > b.bytes; },
    [](const arena_request& a, const arena_request& b) {
      return static_cast<double>(a.bytes) * static_cast<double>(a.last - a.first + 1) >
             static_cast<double>(b.bytes) * static_cast<double>(b.last - b.first + 1);
    },
    [](const arena_request& a, const arena_request& b) { return a.first < b.first; },
};

std::size_t most_live(std::span<const arena_request> requests) {
  std::map<std::int64_t, std::int64_t> change;
  for (const arena_request& r : requests) {
    change[r.first] += static_cast<std::int64_t>(rounded(r.bytes));
    change[r.last + 1] -= static_cast<std::int64_t>(rounded(r.bytes));
  }
  std::int64_t live = 0, most = 0;
  for (auto [step, delta] : change) most = std::max(most, live += delta);
  return static_cast<std::size_t>(most);
}

// Computes offsets and total size for one order.
std::pair<std::vector<std::size_t>, std::size_t> place(std::span<const arena_request> requests, precedes before) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return before(requests[a], requests[b]); });

  std::vector<std::size_t> offsets(requests.size(), 0), placed;  // placed is sorted by offset
  std::size_t total = 0;
  for (std::size_t i : order) {
    const arena_request& mine = requests[i];
    std::size_t size = rounded(mine.bytes), end_of_live = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (std::size_t j : placed) {
      const arena_request& other = requests[j];
      if (other.last < mine.first || mine.last < other.first) continue;
      if (offsets[j] > end_of_live) {
        std::size_t gap = offsets[j] - end_of_live;
        if (gap >= size && gap < best_gap) best = end_of_live, best_gap = gap;
      }
      end_of_live = std::max(end_of_live, offsets[j] + rounded(other.bytes));
    }
    offsets[i] = best != SIZE_MAX ? best : end_of_live;
    total = std::max(total, offsets[i] + size);
    placed.insert(std::ranges::upper_bound(placed, offsets[i], {}, [&](std::size_t j) { return offsets[j]; }), i);
  }
  return {std::move(offsets), total};
}

}  // namespace

arena_layout pack_arena(std::span<const arena_request> requests) {
  arena_layout result;
  result.bytes = SIZE_MAX;
  result.lower_bound = most_live(requests);
  for (const arena_request& r : requests) result.sum += rounded(r.bytes);
  for (precedes order : orders) {
    auto [offsets, total] = place(requests, order);
    if (total < result.bytes) result.offsets = std::move(offsets), result.bytes = total;
    if (result.bytes == result.lower_bound) break;
  }
  return result;
}

}  // namespace kiln
