// Turns Ctrl-C and SIGTERM into a request to stop: work in progress is finished and nothing new is started. A second
// signal ends the process at once. Create one object per process, before other threads are started; it receives the
// signals on its own thread.
#pragma once

#include <stop_token>
#include <thread>

namespace kiln::tools {

// The exit code of a command that was stopped by a signal (128 + SIGINT, as in shells).
inline constexpr int interrupted_code = 130;

class interruption {
 public:
  interruption();
  std::stop_token token() const { return asked_.get_token(); }
  bool requested() const { return asked_.stop_requested(); }

 private:
  std::stop_source asked_;
  std::jthread listener_;
};

}  // namespace kiln::tools
