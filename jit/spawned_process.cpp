#include "jit/spawned_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "ir/error.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::size_t longest_line = 400;

[[noreturn]] void throw_system_error(std::string_view what, int number) {
  throw error(error_kind::io, fmt::format("cannot start a child process: {}: {}", what, std::strerror(number)));
}

}  // namespace

void descriptor::reset() {
  if (number_ >= 0) close(std::exchange(number_, -1));
}

channel make_channel(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) throw_system_error("socketpair", errno);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {descriptor(ends[0]), descriptor(ends[1])};
}

spawned_process::spawned_process(const std::vector<std::string>& arguments, int input, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, errors, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int s : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&defaults, s);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  int failed = posix_spawn(&id_, words[0], &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) throw_system_error(arguments[0], failed);
}

spawned_process::~spawned_process() {
  if (status_) return;
  // A fork may not have made its group yet (worker_host.cpp).
  if (kill(-id_, SIGKILL) != 0) kill(id_, SIGKILL);
  wait(0);
}

std::optional<int> spawned_process::wait(int flags) {
  int status = 0;
  while (!status_) {
    pid_t done = waitpid(id_, &status, flags);
    if (done == id_) status_ = status;
    else if (done < 0 && errno == EINTR) continue;
    else if (done < 0) status_ = 0;  // ECHILD: this process ignores SIGCHLD, so the system has waited for it
    else break;
  }
  return status_;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1).substr(0, longest_line));
}

}  // namespace kiln
