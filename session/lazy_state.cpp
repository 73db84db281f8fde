#include "session/lazy_state.hpp"

#include <utility>

namespace kiln {
namespace {

// An instance with general kernels is hot after this many runs that took this long in total.
constexpr std::size_t hot_runs = 8;
constexpr double hot_ms = 200;

}  // namespace

void lazy_state::ran(double ms) {
  const std::size_t runs = ++runs_;
  if (runs == 2 && watch_.ran_twice) watch_.ran_twice();
  if (!watch_.hot || told_hot_) return;
  const double all = ran_ms_ += ms;
  if (runs >= hot_runs && all >= hot_ms && !told_hot_.exchange(true)) watch_.hot();
}

void lazy_state::cool() {
  ran_ms_ = 0;
  told_hot_ = false;
}

void lazy_state::choose(kernel_choice made) {
  if (choice_.exchange(made) != made && made == kernel_choice::specialized) swapped_();
}

void lazy_state::put_on_trial(executable specialized) {
  {
    std::lock_guard lock(mutex_);
    specialized_ = std::move(specialized);
  }
  choice_ = kernel_choice::on_trial;
}

executable lazy_state::specialized() const {
  std::lock_guard lock(mutex_);
  return specialized_.value();
}

}  // namespace kiln
