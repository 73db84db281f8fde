#include "jit/tuning/successive_halving.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace kiln {
namespace {

class halving {
 public:
  halving(std::size_t count, const std::function<double(std::size_t)>& sample, const halving_options& options)
      : sample_(sample), options_(options), samples_(count) {
    result_.candidates.resize(count);
    for (std::size_t i = 0; i < count; ++i) running_.push_back(i);
  }

  halving_result run() {
    for (int round = options_.first_samples, taken = 0; !running_.empty() && !result_.stopped;
         taken += round, round *= 2) {
      round = std::min(round, options_.most_samples - taken);
      for (int turn = 0; turn < round && !result_.stopped; ++turn) take_turns();
      for (std::size_t i : running_) result_.candidates[i].time = summarize(samples_[i]);
      if (result_.stopped || taken + round >= options_.most_samples || decided()) break;
      halve();
    }
    for (std::size_t i : running_) result_.candidates[i].finished = true;
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (!samples_[i].empty() && !result_.candidates[i].failure) {
        result_.candidates[i].time = summarize(samples_[i]);
        result_.order.push_back(i);
      }
    std::ranges::stable_sort(result_.order, {},
                             [&](std::size_t i) { return std::tuple(!result_.candidates[i].finished, median(i)); });
    return std::move(result_);
  }

 private:
  double median(std::size_t i) const { return result_.candidates[i].time.median; }

  void take_turns() {
    std::vector<std::size_t> gone;
    for (std::size_t i : running_) {
      if ((result_.stopped = options_.stop())) break;
      try {
        samples_[i].push_back(sample_(i));
        best_ = std::min(best_, samples_[i].back());
        if (samples_[i].size() == 1 && samples_[i][0] > options_.hopeless * best_ && !kept(i)) gone.push_back(i);
      } catch (const error& e) {
        result_.candidates[i].failure = e;
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
      return i == best || clearly_faster(result_.candidates[best].time, result_.candidates[i].time, 0);
    });
  }

  void halve() {
    std::vector<std::size_t> by_time = running_;
    std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return median(i); });
    const timing& best = result_.candidates[by_time[0]].time;
    by_time.resize(std::max<std::size_t>(2, (by_time.size() + 1) / 2));
    std::erase_if(by_time, [&](std::size_t i) { return clearly_faster(best, result_.candidates[i].time, 0); });
    std::erase_if(running_, [&](std::size_t i) { return !kept(i) && std::ranges::find(by_time, i) == by_time.end(); });
  }

  const std::function<double(std::size_t)>& sample_;
  const halving_options& options_;
  std::vector<std::vector<double>> samples_;
  std::vector<std::size_t> running_;
  double best_ = std::numeric_limits<double>::infinity();
  halving_result result_;
};

}  // namespace

halving_result successive_halving(std::size_t count, const std::function<double(std::size_t)>& sample,
                                  const halving_options& options) {
  return halving(count, sample, options).run();
}

}  // namespace kiln
