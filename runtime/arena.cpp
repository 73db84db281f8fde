#include "runtime/arena.hpp"

#include <algorithm>
#include <utility>

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
  std::vector<std::pair<std::int64_t, std::int64_t>> change;
  change.reserve(2 * requests.size());
  for (const arena_request& r : requests) {
    const auto bytes = static_cast<std::int64_t>(rounded(r.bytes));
    change.emplace_back(r.first, bytes);
    change.emplace_back(r.last + 1, -bytes);
  }
  std::ranges::sort(change);  // at equal steps, memory is released first
  std::int64_t live = 0, most = 0;
  for (auto [step, delta] : change) most = std::max(most, live += delta);
  return static_cast<std::size_t>(most);
}

using neighbour_lists = std::vector<std::vector<std::uint32_t>>;

// For each request, the others that live at the same time. Empty requests have none.
neighbour_lists neighbours(std::span<const arena_request> requests) {
  std::vector<std::uint32_t> by_begin;
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes) by_begin.push_back(i);
  std::ranges::sort(by_begin, {}, [&](std::uint32_t i) { return requests[i].first; });
  neighbour_lists result(requests.size());
  std::vector<std::uint32_t> live;
  for (std::uint32_t i : by_begin) {
    std::erase_if(live, [&](std::uint32_t j) { return requests[j].last < requests[i].first; });
    for (std::uint32_t j : live) result[i].push_back(j), result[j].push_back(i);
    live.push_back(i);
  }
  return result;
}

// Computes offsets and total size for one order.
std::pair<std::vector<std::size_t>, std::size_t> place(std::span<const arena_request> requests,
                                                       const neighbour_lists& near, precedes before) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return before(requests[a], requests[b]); });

  std::vector<std::size_t> offsets(requests.size(), 0);
  std::vector<bool> placed(requests.size());
  std::vector<std::pair<std::size_t, std::size_t>> taken;  // begin and end
  std::size_t total = 0;
  for (std::uint32_t i : order) {
    taken.clear();
    for (std::uint32_t j : near[i])
      if (placed[j]) taken.emplace_back(offsets[j], offsets[j] + rounded(requests[j].bytes));
    std::ranges::sort(taken);
    const std::size_t size = rounded(requests[i].bytes);
    std::size_t end_of_live = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const auto& [begin, end] : taken) {
      if (begin > end_of_live) {
        const std::size_t gap = begin - end_of_live;
        if (gap >= size && gap < best_gap) best = end_of_live, best_gap = gap;
      }
      end_of_live = std::max(end_of_live, end);
    }
    offsets[i] = best != SIZE_MAX ? best : end_of_live;
    total = std::max(total, offsets[i] + size);
    placed[i] = true;
  }
  return {std::move(offsets), total};
}

}  // namespace

arena_layout pack_arena(std::span<const arena_request> requests) {
  arena_layout result;
  result.bytes = SIZE_MAX;
  result.lower_bound = most_live(requests);
  for (const arena_request& r : requests) result.sum += rounded(r.bytes);
  const neighbour_lists near = neighbours(requests);
  for (precedes order : orders) {
    auto [offsets, total] = place(requests, near, order);
    if (total < result.bytes) result.offsets = std::move(offsets), result.bytes = total;
    if (result.bytes == result.lower_bound) break;
  }
  return result;
}

}  // namespace kiln
