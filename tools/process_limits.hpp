// What a command may take: time until it has to be done, memory, and the patience of whoever presses Ctrl-C. One object
// per process, made before other threads are.
//
// A thread of its own waits for SIGINT, SIGTERM and the end of the time. It then asks for a stop (ir/cancellation.hpp),
// which long work notices between two pieces and unwinds from. What has not ended a moment later (a pass of LLVM, one
// long kernel, a device that does not answer) is not waited for: temporary files are removed, one line says why, and
// the process ends.
//
// The memory limit is RLIMIT_DATA: what this process allocates, and as much again for each of its worker processes. The
// mapped weights of a file and memory of GPUs are not part of it.
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
  std::string time, memory;  // as given, such as 30s and 2GiB; empty: none
};
void add_limit_options(CLI::App& app, limit_options& limits);

// "2GiB", "512MiB", "4GB" or a number of bytes. Throws error{usage} naming the option.
std::uint64_t parse_bytes(const std::string& text, const char* option);

class process_limits {
 public:
  // Throws error{usage} for what is no size. By itself, so that what is forked before the thread starts is limited too.
  static void limit_memory(const limit_options& limits);

  // Starts to watch the time and the signals. Throws error{usage} for what is no duration.
  explicit process_limits(const limit_options& limits);

  // Why the process ends, if a stop was requested; `otherwise` where none was.
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
