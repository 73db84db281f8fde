#include "jit/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "ir/error.hpp"

extern char** environ;

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void throw_system_error(std::string_view what, int number) { throw error(error_kind::io, fmt::format("cannot start a child process: {}: {}", what, std::strerror(number))); }

class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~descriptor() { reset(); }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void reset() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct channel {
  descriptor ours, theirs;
};

// Sockets, not pipes: writing to a child that has ended is then an error code (MSG_NOSIGNAL) instead of a signal to this process.
channel make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_system_error("socketpair", errno);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {descriptor(ends[0]), descriptor(ends[1])};
}

// A started process in a group of its own; the group is killed, if the process still runs, and waited for at the end.
class child {
 public:
  child(const std::vector<std::string>& arguments, int input, int output, int errors) {
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
  child(const child&) = delete;
  ~child() {
    if (!status_) {
      kill(-id_, SIGKILL);
      wait(0);
    }
  }

  // The child reads its request first, so limits that are set before the request is written hold for all of its work.
  void limit(const child_limits& limits) const {
    auto set = [&](__rlimit_resource what, rlim_t value) {
      rlimit both{value, value};
      prlimit(id_, what, &both, nullptr);
    };
    set(RLIMIT_CORE, 0);
    // Should this process be killed meanwhile, nobody else stops a child that never ends.
    set(RLIMIT_CPU, static_cast<rlim_t>(limits.time.count() / 1000 + 5) * std::max(1u, std::thread::hardware_concurrency()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (limits.memory_bytes > 0) set(RLIMIT_AS, static_cast<rlim_t>(limits.memory_bytes));
#endif
  }

  // The status as waitpid gives it, or nothing while the child runs. `flags`: 0 waits.
  std::optional<int> wait(int flags) {
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

 private:
  pid_t id_ = -1;
  std::optional<int> status_;
};

// Moves bytes between this process and the child's three streams.
class conversation {
 public:
  conversation(channel& input, channel& output, channel& errors, std::span<const std::byte> request, std::int64_t output_limit)
      : input_(input.ours), output_(output.ours), errors_(errors.ours), request_(request), output_limit_(output_limit) {
    if (request_.empty()) input_.reset();
  }

  enum class state { open, finished, too_much };

  // Waits at most until `deadline` for one event and handles it.
  state step(clock::time_point deadline) {
    std::array<pollfd, 3> wanted{pollfd{input_.number(), POLLOUT, 0}, pollfd{output_.number(), POLLIN, 0}, pollfd{errors_.number(), POLLIN, 0}};  // negative ones are ignored
    if (!output_.open() && !errors_.open()) return state::finished;
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<long>(left + 1, 0, 1000))) <= 0) return state::open;
    if (wanted[0].revents) send_request();
    if (wanted[1].revents) {
      receive(output_, [&](std::span<const std::byte> part) { result.insert(result.end(), part.begin(), part.end()); });
      if (static_cast<std::int64_t>(result.size()) > output_limit_) return state::too_much;
    }
    if (wanted[2].revents)
      receive(errors_, [&](std::span<const std::byte> part) {
        words_.append(reinterpret_cast<const char*>(part.data()), part.size());
        if (words_.size() > 2 * kept_words) words_.erase(0, words_.size() - kept_words);
      });
    return state::open;
  }

  // The last line on standard error, or "".
  std::string last_words() const {
    std::string_view text = words_;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
  }

  std::vector<std::byte> result;

 private:
  static constexpr std::size_t kept_words = 8192;

  void send_request() {
    ssize_t n = send(input_.number(), request_.data(), request_.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    request_ = n < 0 ? std::span<const std::byte>() : request_.subspan(static_cast<std::size_t>(n));
    if (request_.empty()) input_.reset();  // end of file for the child, or the child reads no more
  }

  template <class Sink>
  void receive(descriptor& from, Sink sink) {
    std::array<std::byte, 1 << 16> part;
    ssize_t n = recv(from.number(), part.data(), part.size(), 0);
    if (n > 0) sink(std::span<const std::byte>(part).first(static_cast<std::size_t>(n)));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) from.reset();
  }

  descriptor &input_, &output_, &errors_;
  std::span<const std::byte> request_;
  std::int64_t output_limit_;
  std::string words_;
};

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

std::vector<std::byte> run_in_child(const std::vector<std::string>& arguments, std::span<const std::byte> input, const child_limits& limits) {
  auto deadline = clock::now() + limits.time;
  channel in = make_channel(), out = make_channel(), errors = make_channel();
  child process(arguments, in.theirs.number(), out.theirs.number(), errors.theirs.number());
  for (channel* c : {&in, &out, &errors}) c->theirs.reset();
  process.limit(limits);

  auto said = [](const std::string& words) { return words.empty() ? "" : ": " + words; };
  conversation talk(in, out, errors, input, limits.output_bytes);
  auto state = conversation::state::open;
  while (state == conversation::state::open) {
    if (clock::now() >= deadline) throw error(error_kind::timed_out, fmt::format("the compiler's process took longer than {} ms{}", limits.time.count(), said(talk.last_words())));
    state = talk.step(deadline);
  }
  if (state == conversation::state::too_much) throw error(error_kind::compile_failed, fmt::format("the compiler's process wrote more than {} bytes", limits.output_bytes));
  // Its streams are closed; it has next to nothing left to do.
  while (!process.wait(WNOHANG)) {
    if (clock::now() >= deadline) throw error(error_kind::timed_out, fmt::format("the compiler's process took longer than {} ms to end", limits.time.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (int status = *process.wait(WNOHANG); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw error(error_kind::compile_failed, fmt::format("the compiler's process {}{}", describe_end(status), said(talk.last_words())));
  return std::move(talk.result);
}

}  // namespace kiln
