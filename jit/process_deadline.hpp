// A time limit for what another process does. Time in which that process was ready to run but got no processor does not
// count, because on a crowded machine a sound process may wait for minutes. After `patience` times the limit it has
// passed in any case. Where the system does not count such waits (/proc/PID/schedstat), all time counts.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace kiln {

// How long `process` (its first thread) has been ready to run without a processor since it began; nothing where the
// system does not say.
std::optional<std::chrono::nanoseconds> time_without_processor(pid_t process);

class process_deadline {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr int patience = 10;

  process_deadline(pid_t process, std::chrono::milliseconds limit);

  // When passed() can become true at the earliest.
  clock::time_point end() const { return end_; }

  // Whether the limit has passed. Moves end() where the process had to wait meanwhile.
  bool passed();

 private:
  pid_t process_;
  clock::time_point begin_, end_;
  std::chrono::milliseconds limit_;
  std::optional<std::chrono::nanoseconds> waited_before_;
};

}  // namespace kiln
