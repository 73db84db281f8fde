// Who has the device while a model runs and is tuned at the same time: a run, or the tuner for the length of one
// sample. Runs come first: the tuner waits until none is under way, and afterwards until its share of the time allows
// another turn. A run that arrives during a turn waits for its end. Any thread; any number of runs at a time, one
// tuner.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace kiln {

class device_turns {
 public:
  // `share` of the time at most, between 0 and 1, is the tuner's.
  explicit device_turns(double share) : share_(share) {}

  class run_guard {
   public:
    explicit run_guard(device_turns& turns) : turns_(&turns) { turns_->begin_run(); }
    ~run_guard() { turns_->end_run(); }
    run_guard(const run_guard&) = delete;

   private:
    device_turns* turns_;
  };

  class turn {
   public:
    explicit turn(device_turns& turns) : turns_(&turns) {}
    turn(turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    ~turn() {
      if (turns_) turns_->end_turn();
    }

   private:
    device_turns* turns_;
  };
  turn take();
  void give_up();  // the tuner's turn, which nothing may ever end: runs go on beside it

 private:
  using clock = std::chrono::steady_clock;
  void begin_run();
  void end_run();
  void end_turn();
  const double share_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int runs_ = 0;
  bool wanted_ = false, taken_ = false;
  clock::time_point began_{}, next_{};  // of the turn; when another may begin
};

}  // namespace kiln
