#include "runtime/graph/trial.hpp"

#include <algorithm>

namespace kiln {
namespace {

// Differences beyond this end a trial early; smaller ones than that are none.
constexpr double clear_difference = 1.15, no_difference = 1.005;

}  // namespace

std::size_t graph_trial::candidate::counted() const { return runs ? std::min(runs - 1, most_samples) : 0; }

double graph_trial::candidate::median() const {
  std::size_t count = counted();
  if (!count) return 0;
  auto sorted = samples;
  auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

graph_trial::graph_trial(std::vector<run_way> ways) {
  for (run_way way : ways) candidates_.push_back({way, 0, {}});
}

run_way graph_trial::next() const { return std::ranges::min_element(candidates_, {}, &candidate::runs)->way; }

void graph_trial::add(run_way way, double milliseconds) {
  auto found = std::ranges::find(candidates_, way, &candidate::way);
  if (found == candidates_.end()) return;
  if (found->runs > 0 && found->runs <= most_samples) found->samples[found->runs - 1] = milliseconds;
  ++found->runs;
}

std::optional<graph_decision> graph_trial::decision() const {
  std::size_t counted = std::ranges::min(candidates_, {}, &candidate::counted).counted();
  if (counted < least_samples) return std::nullopt;
  const candidate* best = &candidates_[0];
  for (const candidate& c : candidates_)
    if (c.median() * no_difference < best->median()) best = &c;
  bool clear = std::ranges::all_of(candidates_, [&](const candidate& c) { return &c == best || c.median() > best->median() * clear_difference; });
  if (counted < most_samples && !clear) return std::nullopt;
  graph_decision result{best->way != run_way::eager, best->way == run_way::branches, 0, 0};
  for (const candidate& c : candidates_) {
    double& to = c.way == run_way::eager ? result.eager_ms : result.replay_ms;
    to = to == 0 ? c.median() : std::min(to, c.median());
  }
  return result;
}

}  // namespace kiln
