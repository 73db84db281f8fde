// Runs one function under a time limit. LLVM cannot be interrupted, so a call that exceeds its limit keeps running on
// its own thread, which owns everything it touches, and the caller gets error{timed_out}. A process with such abandoned
// calls must exit without running static destructors: see abandoned_calls().
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "ir/error.hpp"

namespace kiln {

// Number of abandoned calls that are still running.
inline std::atomic<int>& abandoned_calls() {
  static std::atomic<int> count = 0;
  return count;
}

// Returns the result of `work`, or rethrows its exception. `work` must own or share everything that it uses.
template <class Work>
auto call_with_deadline(std::chrono::milliseconds limit, const std::string& what, Work work) -> decltype(work()) {
  using result = decltype(work());
  auto task = std::make_shared<std::packaged_task<result()>>(std::move(work));
  auto done = task->get_future();
  auto left_behind = std::make_shared<std::atomic<bool>>(false);
  std::thread runner([task, left_behind] {
    (*task)();
    if (left_behind->load()) --abandoned_calls();
  });
  if (done.wait_for(limit) == std::future_status::ready) {
    runner.join();
    return done.get();
  }
  ++abandoned_calls();
  left_behind->store(true);
  runner.detach();
  throw error(error_kind::timed_out, what + " took longer than " + std::to_string(limit.count()) + " ms");
}

}  // namespace kiln
