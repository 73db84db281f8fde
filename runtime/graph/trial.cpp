#include "runtime/graph/trial.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace kiln {
namespace {

// A way that is slower by more than clear_difference is dropped. Ratios below no_difference count as equal.
constexpr double clear_difference = 1.15, no_difference = 1.01;

// The median (upper one for an even count; 0 for none). Reorders `values`.
double middle_of(std::span<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double graph_trial::burst_times::median() const {
  auto sorted = ms;
  return middle_of(std::span(sorted).first(count));
}

std::pair<double, std::size_t> graph_trial::ratio(const candidate& a, const candidate& b) {
  std::array<double, most_rounds> ratios;
  std::size_t count = 0;
  for (std::size_t r = 0; r < most_rounds; ++r)
    if (a.rounds[r].count && b.rounds[r].count)
      ratios[count++] = a.rounds[r].median() / std::max(b.rounds[r].median(), std::numeric_limits<double>::min());
  return {middle_of(std::span(ratios).first(count)), count};
}

double graph_trial::median(const candidate& c) {
  std::array<double, most_rounds> medians;
  std::size_t count = 0;
  for (const burst_times& b : c.rounds)
    if (b.count) medians[count++] = b.median();
  return middle_of(std::span(medians).first(count));
}

graph_trial::graph_trial(std::vector<run_way> ways) : current_(ways.size() - 1) {
  for (run_way way : ways) candidates_.push_back({way, false, {}});
}

void graph_trial::begin_round() {
  ++round_;
  if (!first_counted_) {
    if (round_ == 1 || (spent_ms_ < warm_ms && round_ <= most_warm_rounds)) return;
  } else if (round_ - first_counted_ < 2 * most_rounds) {
    return;
  }
  // Start to count: the warm-up has ended, or too few times arrived in the rounds so far to decide.
  for (candidate& c : candidates_) c = {c.way, false, {}};
  first_counted_ = round_;
  spent_ms_ = 0;
}

graph_trial::turn graph_trial::next() {
  if (candidates_[current_].left) in_burst_ = 0;
  if (in_burst_ == 0) {
    do {
      current_ = (current_ + 1) % candidates_.size();
      if (current_ == 0) begin_round();
    } while (candidates_[current_].left);
  }
  turn result{candidates_[current_].way, round_, in_burst_ == 0};
  in_burst_ = (in_burst_ + 1) % burst;
  return result;
}

void graph_trial::add(const turn& of, double milliseconds) {
  spent_ms_ += milliseconds;
  auto found = std::ranges::find(candidates_, of.way, &candidate::way);
  if (found == candidates_.end() || of.first || !first_counted_ || of.round < first_counted_ ||
      of.round - first_counted_ >= most_rounds)
    return;
  burst_times& times = found->rounds[of.round - first_counted_];
  if (times.count < times.ms.size()) times.ms[times.count++] = milliseconds;
  if (times.count < times.ms.size() || found->left) return;
  // Each comparison drops at most the slower of two ways, so the fastest way always remains.
  for (candidate& c : candidates_) {
    if (c.left || &c == &*found) continue;
    auto [slower, rounds] = ratio(*found, c);
    if (rounds < least_rounds) continue;
    if (slower > clear_difference) {
      found->left = true;
      return;
    }
    if (slower < 1 / clear_difference) c.left = true;
  }
}

std::optional<graph_decision> graph_trial::decision() const {
  const candidate* best = nullptr;
  bool enough = spent_ms_ >= enough_ms || (first_counted_ && round_ - first_counted_ >= most_rounds);
  for (const candidate& c : candidates_) {
    if (c.left) continue;
    if (!best) {
      best = &c;
      continue;
    }
    auto [slower, rounds] = ratio(c, *best);
    if (!enough || rounds < least_rounds) return std::nullopt;
    if (slower * no_difference < 1) best = &c;
  }
  graph_decision result{best->way != run_way::eager, best->way == run_way::branches, 0, 0};
  for (const candidate& c : candidates_) {
    double& to = c.way == run_way::eager ? result.eager_ms : result.replay_ms;
    to = to == 0 ? median(c) : std::min(to, median(c));
  }
  return result;
}

}  // namespace kiln
