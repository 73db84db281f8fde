#include "runtime/graph/trial.hpp"

#include <algorithm>

namespace kiln {
namespace {

// Differences beyond this end a trial early; smaller ones than that are none.
constexpr double clear_difference = 1.15, no_difference = 1.01;

}  // namespace

double graph_trial::candidate::median() const {
  if (!counted) return 0;
  auto sorted = samples;
  auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(counted / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(counted));
  return *middle;
}

graph_trial::graph_trial(std::vector<run_way> ways) {
  for (run_way way : ways) candidates_.push_back({way, 0, 0, {}});
}

run_way graph_trial::next() const {
  const candidate& here = candidates_[last_];
  return here.runs % burst ? here.way : std::ranges::min_element(candidates_, {}, &candidate::runs)->way;
}

void graph_trial::add(run_way way, double milliseconds) {
  auto found = std::ranges::find(candidates_, way, &candidate::way);
  if (found == candidates_.end()) return;
  last_ = static_cast<std::size_t>(found - candidates_.begin());
  if (found->runs++ % burst && found->counted < most_samples) found->samples[found->counted++] = milliseconds;
}

std::optional<graph_decision> graph_trial::decision() const {
  std::size_t counted = std::ranges::min_element(candidates_, {}, &candidate::counted)->counted;
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
