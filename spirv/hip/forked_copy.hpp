// Runs work in a forked copy of this process. A crash, an abort or an endless loop in the copy becomes an error here
// and does not end this process. This is needed because Clang and LLVM's SPIR-V back end abort on fatal errors and
// recurse as deeply as the source nests.
// Any number of threads may call at once. Throws error{io} if the process cannot be forked.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace kiln::spirv {

struct copy_limits {
  unsigned cpu_seconds = 120;
  // A lock that another thread held at the fork is never released in the copy. A copy that waits for one uses no
  // processor time: after this long without any (at most twice as long) it is killed, and another copy is made.
  std::chrono::milliseconds stall{10000};
  // Stack size if the work runs on the process's main stack.
  std::size_t stack_bytes = std::size_t{64} << 20;
};

// Returns the result of `work`, which must not throw. Throws error{unsupported} with `who` if the copy crashed,
// exceeded its time, stopped working several times, or aborted with an LLVM message.
std::string in_forked_copy(const std::string& who, const std::function<std::string()>& work,
                           const copy_limits& limits = {});

}  // namespace kiln::spirv
