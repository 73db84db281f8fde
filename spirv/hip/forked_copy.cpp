#include "spirv/hip/forked_copy.hpp"

#include <llvm/Support/ErrorHandling.h>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>
#include <string_view>

#include "ir/error.hpp"

namespace kiln::spirv {
namespace {

// The first character of an answer.
constexpr char done = 'S', gave_up = 'E';

constexpr int max_attempts = 5;

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void limit(int what, rlim_t wanted) {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min(wanted, now.rlim_max);
  setrlimit(what, &now);
}

[[noreturn]] void work_and_exit(int file, const std::function<std::string()>& work, const copy_limits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int crash : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGXCPU}) std::signal(crash, SIG_DFL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_STACK, limits.stack_bytes);
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler(
      [](void* where, const char* reason, bool) {
        write_all(*static_cast<int*>(where), std::string(1, gave_up) + reason);
        _exit(0);
      },
      &file);
  write_all(file, done + work());
  _exit(0);
}

// Processor time that a child has used.
std::chrono::nanoseconds time_used(pid_t child) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Reads until the child closes its end. Returns nothing if the child stopped working before.
std::optional<std::string> answer_of(pid_t child, int file, std::chrono::milliseconds stall) {
  std::string answer;
  char buffer[1 << 16];
  std::chrono::nanoseconds before{-1};
  while (true) {
    pollfd ready{file, POLLIN, 0};
    const int events = poll(&ready, 1, static_cast<int>(stall.count()));
    if (events == 0) {
      const auto now = time_used(child);
      if (now == before) return {};
      before = now;
    }
    if (events <= 0) continue;
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return answer;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

struct outcome {
  std::optional<std::string> answer;  // nothing: it stalled and was killed
  int status = 0;
};

outcome fork_once(const std::function<std::string()>& work, const copy_limits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw error(error_kind::io, "cannot create a pipe to a forked copy of this process");
  const pid_t child = fork();
  if (child == 0) work_and_exit(ends[1], work, limits);
  close(ends[1]);
  outcome result;
  if (child > 0) result.answer = answer_of(child, ends[0], limits.stall);
  close(ends[0]);
  if (child < 0) throw error(error_kind::io, "cannot fork this process");
  if (!result.answer) kill(child, SIGKILL);
  while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {}
  return result;
}

}  // namespace

std::string in_forked_copy(const std::string& who, const std::function<std::string()>& work,
                           const copy_limits& limits) {
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    const auto [answer, status] = fork_once(work, limits);
    if (!answer) continue;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
      throw error(error_kind::unsupported, who + " did not finish within " + std::to_string(limits.cpu_seconds) + " s");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer->empty())
      throw error(error_kind::unsupported,
                  who + " crashed" + (WIFSIGNALED(status) ? " (signal " + std::to_string(WTERMSIG(status)) + ")" : ""));
    if (answer->front() != done) throw error(error_kind::unsupported, who + " gave up: " + answer->substr(1));
    return answer->substr(1);
  }
  throw error(error_kind::unsupported, who + " stopped working " + std::to_string(max_attempts) + " times");
}

}  // namespace kiln::spirv
