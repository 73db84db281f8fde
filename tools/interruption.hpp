// Ctrl-C and SIGTERM as a request to stop: what is being made is finished, nothing new is begun. A second signal ends
// the process at once. One object per process, made before other threads are; signals are received by a thread of its
// own.
#pragma once

#include <stop_token>
#include <thread>

namespace kiln::tools {

// The exit code of a command that was asked to stop and did, as shells count it.
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
