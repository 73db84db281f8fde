// Runs one function under a time limit. LLVM cannot be interrupted, so a call that runs past its limit is left behind
// on its thread, which owns everything it touches, and the caller goes on with error{timed_out}. A process that has
// left calls behind must end without running static destructors: see abandoned_calls().
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "ir/error.hpp"

namespace kiln {

// How many calls were left behind and are still running.
inline std::atomic<int>& abandoned_calls() {
  static std::atomic<int> count = 0;
  return count;
}

// `work` must own or share all that it uses. Its exception, or its result, is passed on.
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
