// State that the runners of one instance of a session with specialization::lazy share: how often it ran, and which of
// its kernels are the faster ones. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "runtime/executable.hpp"

namespace kiln {

// Callbacks by which a lazy session follows the runs of an instance: each is called once, by the thread that runs.
struct instance_watch {
  std::function<void()> ran_twice = nullptr;
  std::function<void()> hot = nullptr;  // general kernels have run often enough to be worth specialized ones
  explicit operator bool() const { return ran_twice || hot; }
};

// The kernels of an instance that began with general ones.
enum class kernel_choice : std::uint8_t {
  none_yet,     // there are only general ones
  on_trial,     // there are specialized ones, too
  general,      // general ones are as fast
  specialized,  // specialized ones are faster
};

class lazy_state {
 public:
  // `serves_many`: the instance began with kernels that serve many sizes. `swapped` is called once, by a thread that
  // runs, when specialized kernels are chosen.
  lazy_state(bool serves_many, std::function<void()> swapped)
      : serves_many_(serves_many), swapped_(std::move(swapped)) {}

  bool serves_many() const { return serves_many_; }
  // Called once, before the first run.
  void watch(instance_watch by) { watch_ = std::move(by); }
  bool watched() const { return static_cast<bool>(watch_); }
  // Counts a run.
  void ran(double ms);
  // For hot() that came when kernels could not be specialized: it is called again after as many runs.
  void cool();

  kernel_choice choice() const { return choice_; }
  void choose(kernel_choice made);
  void put_on_trial(executable specialized);
  executable specialized() const;  // unless choice() is none_yet

 private:
  const bool serves_many_;
  const std::function<void()> swapped_;
  instance_watch watch_;
  std::atomic<std::size_t> runs_ = 0;
  std::atomic<double> ran_ms_ = 0;
  std::atomic<bool> told_hot_ = false;
  std::atomic<kernel_choice> choice_ = kernel_choice::none_yet;
  mutable std::mutex mutex_;  // guards specialized_
  std::optional<executable> specialized_;
};

}  // namespace kiln
