#include "runtime/arena.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace kiln {
namespace {

// Placement order: the request with the smallest key comes first; of equal keys the one with the smaller index.
struct keyed {
  std::uint64_t key;
  std::uint32_t index;
  friend bool operator<(const keyed& a, const keyed& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
};

using order_key = std::uint64_t (*)(const arena_request& r);
constexpr order_key largest_first = [](const arena_request& r) -> std::uint64_t { return ~r.bytes; };
constexpr order_key most_bytes_and_steps_first = [](const arena_request& r) -> std::uint64_t {
  const double product = static_cast<double>(r.bytes) * static_cast<double>(r.last - r.first + 1);
  return ~std::bit_cast<std::uint64_t>(product);  // positive doubles are ordered as their bits
};

// Sorts the requests that are not empty.
void sort_by(std::span<const arena_request> requests, order_key key, std::vector<keyed>& result) {
  result.clear();
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes) result.push_back({key(requests[i]), i});
  std::ranges::sort(result, std::less{});
}

// The same by their first steps, which are small numbers: by counting.
void sort_by_first(std::span<const arena_request> requests, std::vector<keyed>& result) {
  std::vector<std::uint32_t> at;
  for (const arena_request& r : requests) {
    if (!r.bytes) continue;
    const auto next = static_cast<std::size_t>(r.first) + 1;
    if (next >= at.size()) at.resize(next + 1);
    ++at[next];
  }
  for (std::size_t i = 1; i < at.size(); ++i) at[i] += at[i - 1];
  result.resize(at.empty() ? 0 : at.back());
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (const arena_request& r = requests[i]; r.bytes)
      result[at[static_cast<std::size_t>(r.first)]++] = {static_cast<std::uint64_t>(r.first), i};
}

// Steps are consecutive numbers, so this is a sum over them.
std::size_t most_live(std::span<const arena_request> requests) {
  std::int64_t steps = 0;
  for (const arena_request& r : requests) steps = std::max(steps, r.last + 1);
  std::vector<std::int64_t> change(static_cast<std::size_t>(steps) + 1);
  for (const arena_request& r : requests) {
    const auto bytes = static_cast<std::int64_t>(arena_aligned(r.bytes));
    change[static_cast<std::size_t>(r.first)] += bytes;
    change[static_cast<std::size_t>(r.last + 1)] -= bytes;
  }
  std::int64_t live = 0, most = 0;
  for (std::int64_t delta : change) most = std::max(most, live += delta);
  return static_cast<std::size_t>(most);
}

// For each request, the others that live at the same time: of request i those in [begin[i], begin[i + 1]) of `all`.
// Empty requests have none.
struct neighbour_lists {
  std::vector<std::uint32_t> begin, all;
  std::span<const std::uint32_t> of(std::uint32_t i) const {
    return std::span(all).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

neighbour_lists neighbours(std::span<const arena_request> requests, const std::vector<keyed>& by_begin) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::vector<std::uint32_t> live;
  neighbour_lists result;
  result.begin.resize(requests.size() + 1);
  for (const keyed& next : by_begin) {
    std::erase_if(live, [&](std::uint32_t j) { return requests[j].last < requests[next.index].first; });
    for (std::uint32_t j : live) {
      pairs.emplace_back(next.index, j);
      ++result.begin[next.index], ++result.begin[j];
    }
    live.push_back(next.index);
  }
  std::uint32_t end = 0;
  for (std::uint32_t& count : result.begin) end += count, count = end;
  result.all.resize(end);
  for (const auto& [i, j] : pairs) result.all[--result.begin[i]] = j, result.all[--result.begin[j]] = i;
  return result;
}

// The memory of place() for one order after another.
struct placement {
  std::vector<keyed> order;
  std::vector<std::size_t> offsets;
  std::vector<std::uint8_t> placed;
  std::vector<std::pair<std::size_t, std::size_t>> taken;  // begin and end
};

// Computes offsets in the order at.order and returns the total size.
std::size_t place(std::span<const arena_request> requests, const neighbour_lists& near, placement& at) {
  at.offsets.assign(requests.size(), 0);
  at.placed.assign(requests.size(), 0);
  std::size_t total = 0;
  for (const keyed& next : at.order) {
    at.taken.clear();
    for (std::uint32_t j : near.of(next.index))
      if (at.placed[j]) at.taken.emplace_back(at.offsets[j], at.offsets[j] + arena_aligned(requests[j].bytes));
    std::ranges::sort(at.taken);
    const std::size_t size = arena_aligned(requests[next.index].bytes);
    std::size_t end_of_live = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const auto& [begin, end] : at.taken) {
      if (begin > end_of_live) {
        const std::size_t gap = begin - end_of_live;
        if (gap >= size && gap < best_gap) best = end_of_live, best_gap = gap;
      }
      end_of_live = std::max(end_of_live, end);
    }
    at.offsets[next.index] = best != SIZE_MAX ? best : end_of_live;
    total = std::max(total, at.offsets[next.index] + size);
    at.placed[next.index] = 1;
  }
  return total;
}

}  // namespace

arena_layout arena_limits(std::span<const arena_request> requests) {
  arena_layout result;
  for (const arena_request& r : requests) result.sum += arena_aligned(r.bytes);
  result.lower_bound = most_live(requests);
  return result;
}

arena_layout pack_arena(std::span<const arena_request> requests) {
  arena_layout result = arena_limits(requests);
  result.bytes = SIZE_MAX;
  std::vector<keyed> by_first;
  sort_by_first(requests, by_first);
  const neighbour_lists near = neighbours(requests, by_first);
  placement made;
  for (order_key key : {largest_first, most_bytes_and_steps_first, order_key{}}) {
    if (key) sort_by(requests, key, made.order);
    else made.order.swap(by_first);
    const std::size_t total = place(requests, near, made);
    if (total < result.bytes) std::swap(result.offsets, made.offsets), result.bytes = total;
    if (result.bytes == result.lower_bound) break;
  }
  return result;
}

}  // namespace kiln
