#include "jit/worker_host.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "ir/error.hpp"
#include "jit/sandbox.hpp"
#include "jit/spawned_process.hpp"
#include "jit/worker_protocol.hpp"

namespace kiln {
namespace {

using namespace worker_protocol;

bool read_all(int from, void* to, std::size_t bytes) {
  for (auto* at = static_cast<std::byte*>(to); bytes > 0;) {
    ssize_t n = read(from, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int to, const void* from, std::size_t bytes) {
  for (auto* at = static_cast<const std::byte*>(from); bytes > 0;) {
    ssize_t n = send(to, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void lower_limit(__rlimit_resource what, rlim_t value) {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return;
  now.rlim_cur = now.rlim_max = std::min(value, now.rlim_max);
  setrlimit(what, &now);
}

rlim_t address_space_in_use() {
  rlim_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// LLD's input is a file in memory. Nothing else is written.
constexpr rlim_t largest_file = rlim_t{1} << 30;

void limit_worker(const control_request& request) {
  lower_limit(RLIMIT_CORE, 0);
  lower_limit(RLIMIT_FSIZE, largest_file);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (request.memory_bytes > 0)
    lower_limit(RLIMIT_AS, address_space_in_use() + static_cast<rlim_t>(request.memory_bytes));
#endif
  if (request.nice > 0) setpriority(PRIO_PROCESS, 0, request.nice);
}

// Requests of this process's own user are as large as payloads are; this bounds what a mistake in the protocol could
// allocate.
constexpr std::uint64_t largest_request = std::uint64_t{1} << 30;

// Lets this process use that much more processor time before the operating system kills it. The parent's own deadline
// is shorter; this limit serves when the parent is gone.
void limit_processor_time(std::uint64_t seconds) {
  rusage used{};
  rlimit now{};
  if (seconds == 0 || getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &now) != 0) return;
  const auto so_far = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  now.rlim_cur = std::min<rlim_t>(so_far + seconds + 2, now.rlim_max);  // 2: both parts were rounded down
  setrlimit(RLIMIT_CPU, &now);
}

int serve(int requests, const worker_function& answer) {
  for (request_header header; read_all(requests, &header, sizeof header);) {
    if (header.bytes > largest_request) return 3;
    std::vector<std::byte> request(header.bytes);
    if (!read_all(requests, request.data(), request.size())) return 3;
    limit_processor_time(header.processor_seconds);
    auto send_frame = [&](frame kind, std::span<const std::byte> bytes) {
      frame_header header{kind, bytes.size()};
      return write_all(requests, &header, sizeof header) && write_all(requests, bytes.data(), bytes.size());
    };
    std::vector<std::byte> answered = answer(request, [&] { send_frame(frame::accepted, {}); });
    if (!send_frame(frame::answer, answered)) return 3;
  }
  return 0;
}

// Forks a worker and returns its process, or -errno.
pid_t start_worker(const control_request& request, const descriptor& requests, const descriptor& words, pid_t host,
                   const worker_function& answer) {
  std::fflush(nullptr);
  pid_t worker = fork();
  if (worker < 0) return -errno;
  if (worker > 0) return worker;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != host) _exit(3);  // the host ended before the line above
  // Nobody writes to a worker's standard input. Reading the writing end of a pipe fails at once, and needs no
  // /dev/null, which a bare root lacks.
  if (dup2(words.number(), STDIN_FILENO) < 0 || dup2(words.number(), STDOUT_FILENO) < 0 ||
      dup2(words.number(), STDERR_FILENO) < 0)
    _exit(3);
  limit_worker(request);
  enter_sandbox();
  _exit(serve(requests.number(), answer));
}

// One control message with the descriptors that came with it; none at the end of the pool.
struct received {
  control_request request;
  std::array<descriptor, 2> passed;
};

std::optional<received> receive_control() {
  received result;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> ancillary;
  iovec data{&result.request, sizeof result.request};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  ssize_t n;
  while ((n = recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
  if (n != static_cast<ssize_t>(sizeof result.request)) return std::nullopt;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
    int numbers[2];
    std::memcpy(numbers, CMSG_DATA(head), sizeof numbers);
    result.passed = {descriptor(numbers[0]), descriptor(numbers[1])};
  }
  return result;
}

// Only a child of this host is killed, and nobody else waits for it, so its number cannot have become somebody else's.
// A worker of a host before this one ended with that host: its number says nothing any more.
int stop_worker(pid_t process) {
  int status = 0;
  if (waitpid(process, &status, WNOHANG) != 0) return status;
  kill(process, SIGKILL);
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

}  // namespace

int run_worker_host(const std::function<worker_function()>& prepare) {
  worker_function answer;
  const pid_t self = getpid();
  while (std::optional<received> message = receive_control()) {
    if (!answer) answer = prepare();
    if (message->request.what == control::prepare) continue;
    control_answer done;
    const control_request& request = message->request;
    if (request.what == control::start)
      done.process = start_worker(request, message->passed[0], message->passed[1], self, answer);
    else done.status = stop_worker(request.process);
    if (!write_all(STDIN_FILENO, &done, sizeof done)) break;
  }
  return 0;
}

std::optional<forked_host> fork_worker_host(const std::function<worker_function()>& prepare) {
  std::optional<channel> made;
  try {
    made = make_channel(SOCK_SEQPACKET);
  } catch (const error&) {
    return std::nullopt;
  }
  std::fflush(nullptr);
  const pid_t host = fork();
  if (host < 0) return std::nullopt;
  // A group of its own, because a terminal's signals are for the process that the user started. Both processes make it,
  // so that it exists whichever runs first.
  setpgid(host, host);
  if (host > 0) return forked_host{std::move(made->ours), host};
  for (int signal : {SIGPIPE, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  // Descriptors 0 to 2 must stay occupied, because descriptors that arrive later would otherwise get their numbers. If
  // /dev/null cannot be opened, use a folder, to which every write fails.
  int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0) nothing = open("/", O_RDONLY | O_DIRECTORY);
  if (dup2(made->theirs.number(), STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
      dup2(nothing, STDERR_FILENO) < 0)
    _exit(3);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  _exit(run_worker_host(prepare));
}

}  // namespace kiln
