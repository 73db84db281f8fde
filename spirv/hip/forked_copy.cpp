#include "spirv/hip/forked_copy.hpp"

#include <llvm/Support/ErrorHandling.h>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "ir/error.hpp"

namespace kiln::spirv {
namespace {

// The first character of an answer.
constexpr char done = 'S', gave_up = 'E';

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

}  // namespace

std::string in_forked_copy(const std::string& who, const std::function<std::string()>& work,
                           const copy_limits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw error(error_kind::io, "cannot create a pipe to a forked copy of this process");
  pid_t child = fork();
  if (child == 0) work_and_exit(ends[1], work, limits);
  close(ends[1]);
  std::string answer;
  char buffer[1 << 16];
  while (child > 0) {
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (child < 0) throw error(error_kind::io, "cannot fork this process");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    throw error(error_kind::unsupported, who + " did not finish within " + std::to_string(limits.cpu_seconds) + " s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    throw error(error_kind::unsupported,
                who + " crashed" + (WIFSIGNALED(status) ? " (signal " + std::to_string(WTERMSIG(status)) + ")" : ""));
  if (answer[0] != done) throw error(error_kind::unsupported, who + " gave up: " + answer.substr(1));
  return answer.substr(1);
}

}  // namespace kiln::spirv
