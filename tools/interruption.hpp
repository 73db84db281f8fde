// Turns Ctrl-C, SIGTERM and the end of a time limit into a request to stop: work in progress is finished and nothing
// new is started. A signal after that ends the process at once. Create one object per process, before other threads are
// started; it receives the signals on its own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

namespace kiln::tools {

// The exit code of a command that was stopped by a signal (128 + SIGINT, as in shells).
inline constexpr int interrupted_code = 130;

class interruption {
 public:
  explicit interruption(std::optional<std::chrono::milliseconds> limit = {});
  std::stop_token token() const { return asked_.get_token(); }
  bool requested() const { return asked_.stop_requested(); }
  bool expired() const { return expired_; }  // the time limit made the request

 private:
  std::stop_source asked_;
  std::atomic<bool> expired_ = false;
  std::jthread listener_;
};

}  // namespace kiln::tools
