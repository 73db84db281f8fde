// Arbitrates the device while a model runs and is tuned at the same time. Either runs use it, or the tuner does for the
// length of one sample. Runs come first: the tuner waits until no run is active, and after its turn it waits until its
// share of the time allows another. A run that arrives during a turn waits until the turn ends. Any thread may call;
// any number of runs may be active at a time, but there is only one tuner.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace kiln {

class device_turns {
 public:
  // The tuner gets at most `share` of the time, in (0, 1].
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
  // Releases a turn that may never end, because the tuner's work hangs. Runs then continue beside it.
  void give_up();

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
  clock::time_point began_{}, next_{};  // when the current turn began; when the next one may begin
};

}  // namespace kiln
