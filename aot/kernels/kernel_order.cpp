#include "aot/kernels/kernel_order.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

kernel_order::kernel_order(std::size_t units, graph g) : graph_(std::move(g)), place_(units), seen_(units) {
  for (std::size_t u = 0; u < units; ++u) place_[u] = u;
}

// Collects the units reachable from `start` (its transitive readers if `forward`, else its transitive inputs) that are
// positioned before `end` (after it if not `forward`). Returns true and stops if a path through another unit reaches
// `end`.
bool kernel_order::collect(std::size_t start, std::size_t end, bool forward, std::vector<std::size_t>& between) {
  struct step {
    std::size_t unit;
    bool through;  // another unit lies between `start` and here
  };
  // Marks: stamp_ - 1 if only reached directly, stamp_ if reached through another unit.
  stamp_ += 2;
  std::vector<step> open{{start, false}};
  bool found = false;
  while (!open.empty() && !found) {
    const step at = open.back();
    open.pop_back();
    const bool through = at.through || (at.unit != start && !graph_.transparent(at.unit));
    graph_.neighbours(at.unit, forward, [&](std::size_t next) {
      if (next == start) return;
      if (next == end) {
        found |= through;
        return;
      }
      const bool transparent = graph_.transparent(next);
      if (!transparent && (forward ? place_[next] > place_[end] : place_[next] < place_[end])) return;
      const std::size_t mark = stamp_ - (through || !transparent ? 0 : 1);
      if (seen_[next] >= mark) return;
      if (!transparent) between.push_back(next);
      seen_[next] = mark;
      open.push_back({next, through});
    });
  }
  return found;
}

bool kernel_order::parted(std::size_t a, std::size_t b) {
  if (place_[a] > place_[b]) std::swap(a, b);
  std::vector<std::size_t> between;
  return collect(a, b, true, between);
}

void kernel_order::merge(std::size_t kept, std::size_t gone) {
  const bool first = place_[kept] < place_[gone];
  const std::size_t low = first ? kept : gone, high = first ? gone : kept;
  std::vector<std::size_t> before, after;  // relative to the merged unit
  collect(low, high, true, after);
  collect(high, low, false, before);
  auto by_place = [&](std::size_t a, std::size_t b) { return place_[a] < place_[b]; };
  std::sort(before.begin(), before.end(), by_place);
  std::sort(after.begin(), after.end(), by_place);
  std::vector<std::size_t> order = std::move(before);
  order.push_back(kept);
  order.insert(order.end(), after.begin(), after.end());
  std::vector<std::size_t> places;
  for (std::size_t u : order) places.push_back(place_[u]);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = places[i];
}

}  // namespace kiln
