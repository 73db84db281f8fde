#include <algorithm>

#include "runtime/arena.hpp"

namespace kiln {
bool arena_packer::same_lifetimes(std::span<const arena_request> requests) const {
  return std::ranges::equal(requests, lifetimes_, [](const arena_request& a, const arena_request& b) {
    return a.first == b.first && a.last == b.last;
  });
}

bool arena_packer::lay_out(std::span<const arena_request> requests, const way& as, arena_layout& result) const {
  constexpr double larger = 1.02;
  // A request that was empty when the way was kept has no place in it.
  const auto filled = std::ranges::count_if(requests, [](const arena_request& r) { return r.bytes != 0; });
  std::ptrdiff_t placed = 0;
  result.bytes = 0;
  for (const placed_request& p : as.order) {
    std::size_t& offset = result.offsets[p.request];
    offset = p.below == p.request ? 0 : result.offsets[p.below] + arena_aligned(requests[p.below].bytes);
    result.bytes = std::max(result.bytes, offset + arena_aligned(requests[p.request].bytes));
    placed += requests[p.request].bytes != 0;
  }
  if (placed != filled) return false;
  if (static_cast<double>(result.bytes) > static_cast<double>(result.lower_bound) * as.ratio * larger) return false;
  return std::ranges::none_of(pairs_, [&](const auto& pair) {
    const auto [i, j] = pair;
    return requests[i].bytes && requests[j].bytes && result.offsets[i] < result.offsets[j] + requests[j].bytes &&
           result.offsets[j] < result.offsets[i] + requests[i].bytes;
  });
}

// Lifetimes that never come back are not worth a way, so the second layout is the first one that is kept.
void arena_packer::keep(std::span<const arena_request> requests, const arena_layout& made) {
  constexpr std::size_t most_ways = 4;
  if (!same_lifetimes(requests)) {
    ways_.clear();
    pairs_.clear();
    lifetimes_.assign(requests.begin(), requests.end());
    return;
  }
  if (pairs_.empty()) find_pairs();
  std::vector<std::uint32_t> below(requests.size());
  for (std::uint32_t i = 0; i < requests.size(); ++i) below[i] = i;
  const auto look = [&](std::uint32_t upper, std::uint32_t lower) {
    if (made.offsets[upper] == made.offsets[lower] + arena_aligned(requests[lower].bytes)) below[upper] = lower;
  };
  for (const auto& [i, j] : pairs_)
    if (requests[i].bytes && requests[j].bytes) look(i, j), look(j, i);
  way as;
  as.ratio = made.lower_bound ? static_cast<double>(made.bytes) / static_cast<double>(made.lower_bound) : 1;
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes) as.order.push_back({i, below[i]});
  // By offset, so that what a request lies on comes before it.
  std::ranges::sort(as.order, {}, [&](const placed_request& p) { return made.offsets[p.request]; });
  if (ways_.size() == most_ways) ways_.pop_back();
  ways_.insert(ways_.begin(), std::move(as));
}

void arena_packer::find_pairs() {
  for (std::uint32_t i = 0; i < lifetimes_.size(); ++i)
    for (std::uint32_t j = 0; j < i; ++j) {
      const arena_request &a = lifetimes_[i], &b = lifetimes_[j];
      if (a.first <= b.last && b.first <= a.last) pairs_.emplace_back(i, j);
    }
}

arena_layout arena_packer::pack(std::span<const arena_request> requests) {
  if (!ways_.empty() && same_lifetimes(requests)) {
    arena_layout result = arena_limits(requests);
    result.offsets.resize(requests.size());
    for (std::size_t w = 0; w < ways_.size(); ++w)
      if (lay_out(requests, ways_[w], result)) {
        std::rotate(ways_.begin(), ways_.begin() + static_cast<std::ptrdiff_t>(w),
                    ways_.begin() + static_cast<std::ptrdiff_t>(w) + 1);
        return result;
      }
  }
  arena_layout made = pack_arena(requests);
  keep(requests, made);
  return made;
}

}  // namespace kiln
