#include "jit/tuning/race.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace kiln {
namespace {

class race {
 public:
  race(std::size_t count, const std::function<double(std::size_t)>& sample, const race_options& options)
      : sample_(sample), options_(options), samples_(count) {
    result_.contestants.resize(count);
    for (std::size_t i = 0; i < count; ++i) running_.push_back(i);
  }

  race_result run() {
    for (int round = options_.first_samples, taken = 0; !running_.empty() && !result_.stopped;
         taken += round, round *= 2) {
      round = std::min(round, options_.most_samples - taken);
      for (int turn = 0; turn < round && !result_.stopped; ++turn) take_turns();
      for (std::size_t i : running_) result_.contestants[i].time = summarize(samples_[i]);
      if (result_.stopped || taken + round >= options_.most_samples || decided()) break;
      halve();
    }
    for (std::size_t i : running_) result_.contestants[i].finished = true;
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (!samples_[i].empty() && !result_.contestants[i].failure) {
        result_.contestants[i].time = summarize(samples_[i]);
        result_.order.push_back(i);
      }
    std::ranges::stable_sort(result_.order, {},
                             [&](std::size_t i) { return std::tuple(!result_.contestants[i].finished, median(i)); });
    return std::move(result_);
  }

 private:
  double median(std::size_t i) const { return result_.contestants[i].time.median; }

  void take_turns() {
    std::vector<std::size_t> gone;
    for (std::size_t i : running_) {
      if ((result_.stopped = options_.stop())) break;
      try {
        samples_[i].push_back(sample_(i));
        best_ = std::min(best_, samples_[i].back());
        if (samples_[i].size() == 1 && samples_[i][0] > options_.hopeless * best_ && !kept(i)) gone.push_back(i);
      } catch (const error& e) {
        result_.contestants[i].failure = e;
        gone.push_back(i);
      }
    }
    std::erase_if(running_, [&](std::size_t i) { return std::ranges::find(gone, i) != gone.end(); });
  }

  bool kept(std::size_t i) const { return options_.keep_first && i == 0; }

  // Only one candidate is left, or one is clearly faster than all others.
  bool decided() const {
    if (running_.size() <= 1) return true;
    std::size_t best = *std::ranges::min_element(running_, {}, [&](std::size_t i) { return median(i); });
    return std::ranges::all_of(running_, [&](std::size_t i) {
      return i == best || clearly_faster(result_.contestants[best].time, result_.contestants[i].time, 0);
    });
  }

  void halve() {
    std::vector<std::size_t> by_time = running_;
    std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return median(i); });
    const timing& best = result_.contestants[by_time[0]].time;
    by_time.resize(std::max<std::size_t>(2, (by_time.size() + 1) / 2));
    std::erase_if(by_time, [&](std::size_t i) { return clearly_faster(best, result_.contestants[i].time, 0); });
    std::erase_if(running_, [&](std::size_t i) { return !kept(i) && std::ranges::find(by_time, i) == by_time.end(); });
  }

  const std::function<double(std::size_t)>& sample_;
  const race_options& options_;
  std::vector<std::vector<double>> samples_;
  std::vector<std::size_t> running_;
  double best_ = std::numeric_limits<double>::infinity();
  race_result result_;
};

}  // namespace

race_result run_race(std::size_t count, const std::function<double(std::size_t)>& sample, const race_options& options) {
  return race(count, sample, options).run();
}

}  // namespace kiln
