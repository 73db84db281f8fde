#include "tools/interruption.hpp"

#include <signal.h>
#include <time.h>

#include <cstdlib>

namespace kiln::tools {
namespace {

constexpr timespec glance{0, 100'000'000};  // how often the listener checks whether it should end

}  // namespace

interruption::interruption(std::optional<std::chrono::milliseconds> limit) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Threads that are started from now on inherit the mask. Child processes do not (jit/spawned_process.cpp).
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  using clock = std::chrono::steady_clock;
  const auto end = limit ? std::optional(clock::now() + *limit) : std::nullopt;
  listener_ = std::jthread([this, signals, end](std::stop_token done) {
    while (!done.stop_requested()) {
      if (end && !asked_.stop_requested() && clock::now() >= *end) {
        expired_ = true;
        asked_.request_stop();
      }
      if (sigtimedwait(&signals, nullptr, &glance) < 0) continue;
      if (asked_.stop_requested()) std::_Exit(interrupted_code);
      asked_.request_stop();
    }
  });
}

}  // namespace kiln::tools
