// Work that a session does in the background: one thread of low priority, and a queue of bounded length.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace kiln {

// Thrown by work that nobody wants any more. Not a kiln::error, so that it is not taken for a fault of the work.
struct work_cancelled final : std::exception {};

class background_work {
 public:
  // A task ends early, by returning or throwing, when a stop is requested. What it throws is dropped.
  using task = std::function<void(std::stop_token)>;

  // Requests the stop of the current task, waits for its end and drops the others.
  ~background_work();

  // Starts the thread for the first task. If the queue is full, the task is dropped; returns whether it was taken.
  bool add(task work);
  // Returns true if no task is waiting or under way.
  bool idle() const;

 private:
  void work(const std::stop_token& stop);
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<task> tasks_;
  bool busy_ = false;
  std::jthread thread_;  // destroyed first
};

}  // namespace kiln
