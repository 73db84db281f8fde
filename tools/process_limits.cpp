#include "tools/process_limits.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>

#include "ir/cancellation.hpp"
#include "ir/error.hpp"
#include "ir/temporary_file.hpp"
#include "jit/exhausted_memory.hpp"
#include "tools/interruption.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {
namespace {

// How often the watcher checks the clock, and how long work may take to unwind after a request to stop.
constexpr std::chrono::milliseconds glance{50}, grace{600};

struct unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array units{unit{"", 1},          unit{"B", 1},     unit{"KiB", 1 << 10}, unit{"MiB", 1 << 20},
                           unit{"GiB", 1 << 30}, unit{"KB", 1000}, unit{"MB", 1000000},  unit{"GB", 1000000000}};

// The process that reports why it ends, and whether its limit also holds for processes that are forked from it. Forked
// processes without that limit (compile workers) abort, and their parent reports it.
struct reporting_process {
  pid_t number = 0;
  bool limits_children = false;
};
reporting_process& reporting() {
  static reporting_process process;
  return process;
}

[[noreturn]] void end_without_memory() {
  if (::getpid() != reporting().number && !reporting().limits_children) std::abort();
  if (claim_report())
    write_constant(reporting().limits_children
                       ? "kiln: out_of_memory: memory: is used up; raise --memory-limit, or use a machine with more\n"
                       : "kiln: out_of_memory: memory: is used up; use smaller dimensions, or a machine with more\n");
  remove_temporary_files();
  std::_Exit(exit_code(error_kind::out_of_memory));
}

void lower_data_limit(std::uint64_t bytes) {
  const rlimit both{bytes, bytes};
  if (::setrlimit(RLIMIT_DATA, &both) != 0)
    throw error(error_kind::usage, "--memory-limit: exceeds this user's limit (ulimit -d)");
  reporting().limits_children = true;
}

}  // namespace

void add_limit_options(CLI::App& app, limit_options& limits, const char* time) {
  app.add_option("--time-limit", limits.time, time);
  app.add_option(
      "--memory-limit", limits.memory,
      "Allocate at most this much, e.g. 2GiB; each worker process has the same limit. Mapped weights and GPU "
      "memory do not count");
}

std::optional<std::chrono::milliseconds> limit_options::duration() const {
  if (time.empty()) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(parse_duration_ms(time, "--time-limit"), 1e12)));
}

std::uint64_t parse_bytes(const std::string& text, const char* option) {
  std::uint64_t number = 0, bytes = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (problem == std::errc() && number > 0)
    for (const unit& u : units)
      if (u.name == rest && !__builtin_mul_overflow(number, u.bytes, &bytes)) return bytes;
  throw error(error_kind::usage, fmt::format("{}: '{}' is not a size such as 512MiB or 2GiB", option, text));
}

void process_limits::report_exhausted_memory() {
  reporting().number = ::getpid();
  when_memory_is_exhausted(&end_without_memory);
  const static std::terminate_handler otherwise = std::get_terminate();
  std::set_terminate([] {
    try {
      if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      end_without_memory();
    } catch (...) {}
    otherwise();
  });
}

void process_limits::limit_memory(const limit_options& limits) {
  if (!limits.memory.empty()) lower_data_limit(parse_bytes(limits.memory, "--memory-limit"));
}

process_limits::process_limits(const limit_options& limits) : limits_(limits) {
  std::optional<clock::time_point> deadline;
  if (const auto duration = limits.duration()) deadline = clock::now() + *duration;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Threads that are started from now on inherit the mask. Child processes do not (jit/spawned_process.cpp).
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([this, deadline](const std::stop_token& done) { watch(done, deadline); });
}

void process_limits::watch(const std::stop_token& done, std::optional<clock::time_point> deadline) const {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // When the command has ended, wake the watcher at once. The signal is sent to this thread only, where it is blocked
  // like the others.
  const std::stop_callback wake(done, [self = pthread_self()] { pthread_kill(self, SIGTERM); });
  std::optional<clock::time_point> end;  // set when a stop has been requested
  while (!done.stop_requested()) {
    clock::duration wait = glance;
    if (deadline && !end) wait = std::clamp<clock::duration>(*deadline - clock::now(), clock::duration::zero(), glance);
    const timespec pause{0, std::chrono::duration_cast<std::chrono::nanoseconds>(wait).count()};
    const bool signalled = sigtimedwait(&signals, nullptr, &pause) > 0;
    if (done.stop_requested()) break;
    const auto now = clock::now();
    if (signalled && end) break;  // the second signal
    if (!end && (signalled || (deadline && now >= *deadline))) {
      request_stop(signalled ? stop_reason::interrupted : stop_reason::time_limit);
      end = now + grace;
    }
    if (end && now >= *end) break;
  }
  if (done.stop_requested() || !claim_report()) return;  // the command has ended, or is already reporting why
  remove_temporary_files();
  const ending why = describe_stop(limits_, {});
  write_report(why.kind, why.message);
  std::_Exit(why.code);  // without waiting for other threads
}

process_limits::ending process_limits::describe_stop(const limit_options& limits, ending otherwise) {
  switch (requested_stop()) {
    case stop_reason::none: break;
    case stop_reason::interrupted:
      return {"interrupted", "stopped by a signal; files that were not finished are removed", interrupted_code};
    case stop_reason::time_limit:
      return {"timed_out", fmt::format("--time-limit {} has passed: give it more time", limits.time),
              exit_code(error_kind::timed_out)};
  }
  return otherwise;
}

}  // namespace kiln::tools
