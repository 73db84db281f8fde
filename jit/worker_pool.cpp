#include "jit/worker_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>

#include "ir/error.hpp"
#include "jit/process_deadline.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
using namespace worker_protocol;

constexpr std::size_t kept_words = 8192;
constexpr std::size_t each_receive = std::size_t{1} << 20;

int milliseconds_until(clock::time_point end) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
  return static_cast<int>(std::clamp<long>(left + 1, 0, 60000));
}

bool again(ssize_t n) { return n < 0 && (errno == EAGAIN || errno == EINTR); }

// Processor time of a worker so far; nothing where the system does not tell.
std::optional<std::chrono::nanoseconds> processor_time(pid_t process) {
  clockid_t id;
  timespec t;
  if (clock_getcpuclockid(process, &id) != 0 || clock_gettime(id, &t) != 0) return std::nullopt;
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Of this thread: workers that compile for a background thread run in the background as well.
int nice_of_this_thread() {
  errno = 0;
  int nice = getpriority(PRIO_PROCESS, 0);
  return errno == 0 && nice > 0 ? nice : 0;
}

}  // namespace

struct worker_pool::host {
  descriptor control;
  spawned_process process;
  host(const worker_options& options, channel made, int nothing)
      : control(std::move(made.ours)), process(options.arguments, made.theirs.number(), nothing, nothing) {}
  explicit host(forked_host running) : control(std::move(running.control)), process(running.process) {}
};

// A process that waits for requests, or works on one. The host waits for it, at stop().
struct worker_pool::worker {
  std::int32_t process = 0;
  int nice = 0, served = 0;
  descriptor requests, words;
  std::string said;  // what it wrote to its standard streams while it worked

  // Takes what there is; false where there was nothing.
  bool hear() {
    std::array<char, 4096> part;
    ssize_t n = recv(words.number(), part.data(), part.size(), 0);
    if (n > 0) said.append(part.data(), static_cast<std::size_t>(n));
    else if (!again(n)) words.reset();
    if (said.size() > 2 * kept_words) said.erase(0, said.size() - kept_words);
    return n > 0;
  }
};

// A failure of a worker, before we know how its process ended.
struct worker_pool::failure {
  error_kind kind;
  std::string what;
  bool ended = false;  // by itself
};

worker_pool::worker_pool(worker_options options) : options_(std::move(options)) {}
worker_pool::~worker_pool() = default;

void worker_pool::start() {
  std::lock_guard lock(host_mutex_);
  try {
    if (host_) return;
    start_host();
  } catch (const error&) {
    return;  // exchange() tries again and throws
  }
  const control_request request{.what = control::prepare};
  [[maybe_unused]] auto sent =
      send(host_->control.number(), &request, sizeof request, MSG_NOSIGNAL);  // a hint: the next message says it again
}

// Called with host_mutex_ held.
void worker_pool::start_host() {
  if (options_.forked) {
    host_ = std::make_unique<host>(std::move(*options_.forked));
    options_.forked.reset();
    return;
  }
  descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  host_ = std::make_unique<host>(options_, make_channel(SOCK_SEQPACKET), nothing.number());
}

// Called with host_mutex_ held.
control_answer worker_pool::exchange(const control_request& request, std::span<const int> passed) {
  if (!host_) start_host();
  iovec data{const_cast<control_request*>(&request), sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!passed.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(passed.size_bytes());
    std::memcpy(CMSG_DATA(head), passed.data(), passed.size_bytes());
  }
  const int socket = host_->control.number();
  control_answer answer;
  bool closed = true;
  if (sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request)) {
    process_deadline deadline(host_->process.id(), options_.start_limit);
    for (closed = false; !closed && !deadline.passed();) {
      pollfd wanted{socket, POLLIN, 0};
      poll(&wanted, 1, milliseconds_until(deadline.end()));
      ssize_t n = recv(socket, &answer, sizeof answer, 0);
      if (n == static_cast<ssize_t>(sizeof answer)) return answer;
      closed = !again(n);
    }
  }
  // Its end of the socket is closed just before it has ended.
  auto status = host_->process.wait(WNOHANG);
  for (int i = 0; i < 100 && !status && closed; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = host_->process.wait(WNOHANG);
  }
  host_.reset();
  const std::string end = status   ? describe_end(*status)
                          : closed ? "closed its connection"
                                   : fmt::format("does not answer within {} ms", options_.start_limit.count());
  throw error(error_kind::io,
              fmt::format("the compiler's process ({}) {}: is memory short, or the number of processes limited? "
                          "--in-process does without it, for files that you trust",
                          options_.arguments.front(), end));
}

worker_pool::worker worker_pool::start_worker(int nice) {
  channel requests = make_channel(SOCK_STREAM), words = make_channel(SOCK_STREAM);
  const std::array<int, 2> passed{requests.theirs.number(), words.theirs.number()};
  std::lock_guard lock(host_mutex_);
  control_answer answer =
      exchange({.what = control::start, .nice = nice, .memory_bytes = options_.memory_bytes}, passed);
  if (answer.process <= 0)
    throw error(error_kind::io, fmt::format("cannot start a child process: fork: {}", std::strerror(-answer.process)));
  return {answer.process, nice, 0, std::move(requests.ours), std::move(words.ours), {}};
}

worker_pool::worker worker_pool::take(bool fresh) {
  const int nice = nice_of_this_thread();
  if (!fresh) {
    std::lock_guard lock(idle_mutex_);
    auto found = std::ranges::find(idle_, nice, &worker::nice);
    if (found != idle_.end()) {
      worker w = std::move(*found);
      idle_.erase(found);
      return w;
    }
  }
  return start_worker(nice);
}

void worker_pool::keep(worker w) {
  w.said.clear();
  if (++w.served >= options_.requests_per_worker) {
    stop(w);
    return;
  }
  std::lock_guard lock(idle_mutex_);
  idle_.push_front(std::move(w));
}

// Kills the worker, if it still runs. How it ended; nothing where its host is gone, and it with the host.
std::optional<int> worker_pool::stop(worker& w) {
  std::lock_guard lock(host_mutex_);
  if (!host_) return std::nullopt;
  try {
    return exchange({.what = control::stop, .process = w.process}, {}).status;
  } catch (const error&) {
    return std::nullopt;
  }
}

std::vector<std::byte> worker_pool::converse(worker& w, std::span<const std::byte> request,
                                             const worker_limits& limits) {
  process_deadline deadline(w.process, limits.time);
  const auto used_before = processor_time(w.process);
  auto reading_end = clock::now() + limits.reading;
  // Twice the deadline: a backstop, for a worker of several threads too.
  const request_header asked{request.size(), static_cast<std::uint64_t>(limits.time.count() / 500 + 1)};
  std::span<const std::byte> head = std::as_bytes(std::span(&asked, 1)), unsent = request;
  frame_header header;
  std::size_t head_bytes = 0;
  std::vector<std::byte> body;
  bool accepted = false;
  auto fail = [&](std::string what, bool ended) -> failure {
    return {accepted ? error_kind::unsupported : error_kind::corrupted, std::move(what), ended};
  };
  for (;;) {
    if (deadline.passed())
      throw failure{error_kind::timed_out, fmt::format("took longer than {} ms", limits.time.count())};
    if (const auto now = clock::now(); !accepted && now >= reading_end) {
      // On a busy machine the worker may not have had its turn yet.
      const auto used = used_before ? processor_time(w.process) : std::nullopt;
      using std::chrono::milliseconds;
      const auto left =
          used ? std::chrono::duration_cast<milliseconds>(limits.reading - (*used - *used_before)) : milliseconds(0);
      if (left <= milliseconds(0))
        throw fail(fmt::format("did not come to an end of reading it within {} ms", limits.reading.count()), false);
      reading_end = now + left;
    }
    const auto limit = accepted ? deadline.end() : std::min(deadline.end(), reading_end);
    const bool sending = !head.empty() || !unsent.empty();
    const auto events = static_cast<short>(POLLIN | (sending ? POLLOUT : 0));
    std::array<pollfd, 2> wanted{pollfd{w.requests.number(), events, 0}, pollfd{w.words.number(), POLLIN, 0}};
    if (poll(wanted.data(), wanted.size(), milliseconds_until(limit)) <= 0) continue;
    if (wanted[1].revents) w.hear();
    if (sending && wanted[0].revents & POLLOUT) {
      std::span<const std::byte>& part = head.empty() ? unsent : head;
      ssize_t n = send(w.requests.number(), part.data(), part.size(), MSG_NOSIGNAL);
      if (n >= 0) part = part.subspan(static_cast<std::size_t>(n));
      else if (!again(n)) throw fail("", true);
    }
    if (!(wanted[0].revents & (POLLIN | POLLHUP | POLLERR))) continue;

    // A frame: its header, then as much as that says, in pieces, so that memory grows with what arrives.
    const bool headed = head_bytes == sizeof header;
    const std::size_t before = body.size();
    if (headed) body.resize(before + std::min(static_cast<std::size_t>(header.bytes) - before, each_receive));
    std::span<std::byte> part =
        headed ? std::span(body).subspan(before) : std::as_writable_bytes(std::span(&header, 1)).subspan(head_bytes);
    ssize_t n = recv(w.requests.number(), part.data(), part.size(), 0);
    const std::size_t arrived = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    if (headed) body.resize(before + arrived);
    else head_bytes += arrived;
    if (n <= 0 && !again(n)) throw fail("", true);
    if (head_bytes < sizeof header) continue;
    if (header.kind == frame::accepted && header.bytes == 0 && !accepted) {
      accepted = true;
      head_bytes = 0;
      continue;
    }
    if (header.kind != frame::answer) throw fail("answered with bytes that make no sense", false);
    if (header.bytes > options_.answer_bytes)
      throw fail(fmt::format("answered with more than {} bytes", options_.answer_bytes), false);
    if (body.size() == header.bytes) return body;
  }
}

std::vector<std::byte> worker_pool::ask(std::span<const std::byte> request, const worker_limits& limits) {
  for (bool fresh = false;; fresh = true) {
    worker w = take(fresh);
    const bool used = w.served > 0;
    try {
      auto answer = converse(w, request, limits);
      keep(std::move(w));
      return answer;
    } catch (const failure& f) {
      auto status = stop(w);
      if (f.ended && used && !fresh) continue;
      while (w.words.open() && w.hear()) {}
      const std::string words = last_line(w.said);
      const std::string what = !f.ended ? f.what : status ? describe_end(*status) : "ended with its parent";
      throw error(f.kind, fmt::format("the compiler's process {}{}{}", what, words.empty() ? "" : ": ", words));
    } catch (...) {
      stop(w);
      throw;
    }
  }
}

}  // namespace kiln
