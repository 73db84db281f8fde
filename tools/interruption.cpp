#include "tools/interruption.hpp"

#include <signal.h>
#include <time.h>

#include <cstdlib>

namespace kiln::tools {
namespace {

constexpr timespec glance{0, 100'000'000};  // how often the listener checks whether it should end

}  // namespace

interruption::interruption() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Threads that are started from now on inherit the mask. Child processes do not (jit/spawned_process.cpp).
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  listener_ = std::jthread([this, signals](std::stop_token done) {
    while (!done.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &glance) < 0) continue;
      if (asked_.stop_requested()) std::_Exit(interrupted_code);
      asked_.request_stop();
    }
  });
}

}  // namespace kiln::tools
