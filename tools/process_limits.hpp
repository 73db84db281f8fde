// The limits of a command: time, memory, and Ctrl-C. Create one object per process, before other threads are started.
//
// A separate thread waits for SIGINT, SIGTERM and the time limit. It then requests a stop (ir/cancellation.hpp), which
// long work checks between steps and unwinds from. Work that has not ended a moment later (an LLVM pass, one long
// kernel, a device that does not answer) is abandoned: temporary files are removed, one line says why, and the process
// ends.
//
// The memory limit is RLIMIT_DATA. It covers the allocations of this process; each worker process gets the same limit.
// Mapped weights and GPU memory are not covered.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace kiln::tools {

struct limit_options {
  std::string time, memory;  // as given, such as 30s and 2GiB; empty: no limit

  // Throws error{usage} for an invalid duration.
  std::optional<std::chrono::milliseconds> duration() const;
};
void add_limit_options(CLI::App& app, limit_options& limits,
                       const char* time = "End with code 4 when this much time has passed, e.g. 30s");

// "2GiB", "512MiB", "4GB" or a number of bytes. Throws error{usage} naming the option.
std::uint64_t parse_bytes(const std::string& text, const char* option);

class process_limits {
 public:
  // Lets this process end with a line on standard error where LLVM or a function that may not throw lacks memory, which
  // would abort it. Call it once, before others allocate.
  static void report_exhausted_memory();

  // Throws error{usage} for an invalid size. Separate from the constructor, so that processes that are forked before
  // the watcher thread starts are limited too.
  static void limit_memory(const limit_options& limits);

  // Starts to watch the time and the signals. Throws error{usage} for an invalid duration.
  explicit process_limits(const limit_options& limits);

  // Why the process ends, if a stop was requested; else `otherwise`.
  struct ending {
    std::string kind, message;
    int code = 0;
  };
  static ending describe_stop(const limit_options& limits, ending otherwise);

 private:
  using clock = std::chrono::steady_clock;
  void watch(const std::stop_token& done, std::optional<clock::time_point> deadline) const;
  limit_options limits_;
  std::jthread watcher_;
};

}  // namespace kiln::tools
